// SPDX-License-Identifier: Apache-2.0
#include "run/sample_log.h"

#include <gtest/gtest.h>

#include "tests/base/scratch.h"

namespace syntra {
namespace {

std::string OutputsIn(const Path& path) {
  std::string text;
  for (const SampleLine& sample : ReadSampleLines(path)) {
    text += std::to_string(sample.step) + " " + sample.output + "\n";
  }
  return text;
}

TEST(SampleLog, EvaluationsThatAreMadeAgainAreRemoved) {
  const Path path = ScratchDirectory("samples") / "samples.jsonl";
  EXPECT_TRUE(ReadSampleLines(path).empty());
  {
    SampleLog log(path, {0});
    for (const int64_t step : {0, 5, 10}) {
      log.Write({.step = step, .example = 3, .input = "a", .target = "b", .output = "old"});
    }
  }
  { SampleLog kept(path, {.step = 5, .evaluates = false}); }
  EXPECT_EQ(OutputsIn(path), "0 old\n5 old\n");
  SampleLog log(path, {5});
  EXPECT_EQ(OutputsIn(path), "0 old\n");
  log.Write({.step = 5, .example = 3, .input = "a", .target = "b", .output = "new \"line\"\n"});
  EXPECT_EQ(OutputsIn(path), "0 old\n5 new \"line\"\n\n");
  const SampleLine last = ReadSampleLines(path).back();
  EXPECT_EQ(last.example, 3);
  EXPECT_EQ(last.input, "a");
  EXPECT_EQ(last.target, "b");
}

// Someone else's lines stay where they are and are no samples.
TEST(SampleLog, OtherLinesAreNoSamples) {
  const Path path = ScratchDirectory("samples-other") / "samples.jsonl";
  const std::string lines = "hello\n[1]\n{\"step\":1}\n{\"step\":1,\"example\":\"x\"}\n";
  ReplaceFileDurably(path, lines);
  SampleLog log(path, {5});
  EXPECT_EQ(ReadWholeFile(path), lines);
  EXPECT_TRUE(ReadSampleLines(path).empty());
}

}  // namespace
}  // namespace syntra
