// SPDX-License-Identifier: Apache-2.0
// `syntra convert` as users run it: a run leaves as a Hugging Face T5, comes back as a checkpoint,
// and starts a mixture.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Converted : public TinyRun {
 protected:
  Outcome Convert(const std::string& from, const std::string& to, const std::string& format) const {
    return Run({"convert", "--input", Directory(from).string(), "--output", Directory(to).string(),
                "--to", format});
  }
  // Of a checkpoint, on the corpus of these tests.
  double LogPerplexity(const std::string& name) const {
    const Outcome outcome =
        Run({"eval", "--checkpoint", Directory(name).string(), "--json", "--set",
             "data.validation=" + validation_.string(), "--set", "data.input_length=32", "--set",
             "train.batch_size=8", "--set", "evaluation.batches=2", "--set",
             "data.prepared=" + (scratch_ / "prepared").string()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? ParseJson(outcome.out).at("log_perplexity").get<double>() : 0;
  }
};

constexpr const char* kSizes = "{ attention { heads: 2 head_size: 16 ";

TEST_F(Converted, ARunLeavesComesBackAndStartsAMixture) {
  const std::string vanilla = std::string("model.mixer=") + kSizes + "term { dot_product {} } } }";
  Train("a", {vanilla, "train.steps=4"});
  const Outcome exported = Convert("a", "hub", "huggingface");
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("syntra to huggingface; read back and compared"));
  ASSERT_EQ(Convert("hub", "b", "syntra").code, 0);
  const double expected = LogPerplexity("a");
  EXPECT_EQ(LogPerplexity("b"), expected);
  for (const Arguments& command : {Arguments{"eval", "--checkpoint"},
                                   {"generate", "--checkpoint"},
                                   {"inspect", "checkpoint"}}) {
    Arguments arguments = command;
    arguments.push_back(Directory("hub").string());
    const Outcome foreign = Run(arguments);
    EXPECT_EQ(foreign.code, 5) << command[0];
    EXPECT_TRUE(foreign.Says("syntra convert --input " + Directory("hub").string())) << foreign.err;
  }

  // The mixture, at the vanilla end of its gate, is the model that it starts from.
  const std::string mixed =
      std::string("model.mixer=") + kSizes +
      "gate: SIGMOID initial_alpha: 16 term { dense { max_length: 32 } } term "
      "{ dot_product {} } } }";
  Train("c", {mixed, "train.steps=4", "checkpoint.initial=" + Directory("hub").string(),
              "checkpoint.initial_missing=INITIALIZE"});
  const std::vector<Json> lines = Metrics("c");
  const auto start = std::ranges::find_if(
      lines, [](const Json& line) { return line.contains("validation_log_perplexity"); });
  ASSERT_NE(start, lines.end());
  EXPECT_EQ(start->at("step"), 0);
  EXPECT_NEAR(start->at("validation_log_perplexity").get<double>(), expected, 1e-4);
  const Outcome refused = Convert("c", "d", "huggingface");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("model.mixer has a dense term")) << refused.err;
  EXPECT_EQ(Convert("c", "e", "safetensors").code, 0);

  // A start that has no tokenizer has that of the run.
  RemoveAll(Directory("hub") / "spiece.model");
  Train("f", {vanilla, "train.steps=4", "checkpoint.initial=" + Directory("hub").string()});
}

// What is named is what was asked for, not only the directory that was to become it.
TEST_F(Converted, WhatDoesNotFitLeavesNothing) {
  Train("a", {"train.steps=4"});
  const Outcome outcome = Run({"convert", "--input", Directory("a").string(), "--output",
                               Directory("b").string(), "--to", "safetensors"},
                              {.file_size_limit = 10000});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.Says("ulimit -f")) << outcome.err;
  EXPECT_TRUE(outcome.Says("\n  while converting " + Directory("a").string())) << outcome.err;
  EXPECT_TRUE(outcome.Says(" to " + Directory("b").string() + "\n")) << outcome.err;
  for (const Path& path : ListDirectory(scratch_)) {
    EXPECT_FALSE(path.filename().string().starts_with(".b.tmp-")) << path;
  }
  EXPECT_FALSE(Exists(Directory("b")));
}

TEST_F(Converted, OnceByTheRanksOfAJob) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("a", {"train.steps=4"});
  const Outcome outcome = Run({"convert", "--input", Directory("a").string(), "--output",
                               Directory("b").string(), "--to", "safetensors"},
                              {.ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1) << outcome.out;
  EXPECT_TRUE(outcome.Says("syntra convert works in one process; mpirun started 3")) << outcome.err;
}

TEST_F(Converted, FieldsThatAreNotKnownAreNamed) {
  Train("a",
        {std::string("model.mixer=") + kSizes + "term { dot_product {} } } }", "train.steps=4"});
  ASSERT_EQ(Convert("a", "hub", "huggingface").code, 0);
  Json config = ParseJson(ReadWholeFile(Directory("hub") / "config.json"));
  const auto convert = [&](const std::string& to) {
    ReplaceFileDurably(Directory("hub") / "config.json", JsonText(config));
    return Convert("hub", to, "syntra");
  };
  config["torch_dtype"] = "float32";
  EXPECT_FALSE(convert("b").Says("not known here"));
  config["sliding_window"] = 5;
  const Outcome outcome = convert("c");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("config.json: not known here and left out: sliding_window."))
      << outcome.err;
}

}  // namespace
}  // namespace syntra
