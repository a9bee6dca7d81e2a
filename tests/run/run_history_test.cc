// SPDX-License-Identifier: Apache-2.0
#include "run/run_history.h"

#include <cmath>

#include "base/error.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

TEST(RunHistory, ReadsWhatMetricsSay) {
  const Path path = ScratchDirectory("history") / "metrics.jsonl";
  ReplaceFileDurably(path, R"(# a note
{"step":0,"time":"2026-01-01T00:00:00.000Z","validation_log_perplexity":10.5}
{"step":1,"loss":10,"tokens_per_second":100,"seconds":1,"mfu":0.5,"skipped":0,"data_seconds":0.5}
{"step":2,"loss":null,"tokens_per_second":400,"seconds":3,"mfu":0.1,"skipped":1,"data_seconds":0.25,"backward_seconds":2}
{"step":2,"time":"1970-01-01T00:01:00.500Z","validation_log_perplexity":9,"cola/matthews":0.5}
{"step":3,"lo)");
  const RunHistory history = ReadRunHistory(path);
  EXPECT_EQ(history.step, 2);
  ASSERT_EQ(history.loss.size(), 2u);
  EXPECT_EQ(history.loss[0].y, 10);
  EXPECT_TRUE(std::isnan(history.loss[1].y));
  ASSERT_EQ(history.validation.size(), 2u);
  EXPECT_EQ(history.validation[1].x, 2);
  EXPECT_EQ(history.validation[1].y, 9);
  EXPECT_EQ(history.seconds, 4);
  EXPECT_EQ(history.tokens_per_second, 325);
  EXPECT_DOUBLE_EQ(history.mfu, 0.2);
  EXPECT_EQ(history.skipped, 1);
  EXPECT_EQ(history.skipped_seconds, 3);
  EXPECT_EQ(history.damaged_lines, 1);
  EXPECT_EQ(history.phases, (PhaseSeconds{0.75, 0, 2, 0, 0}));
  EXPECT_EQ(history.last_time, 60.5);
  EXPECT_EQ(history.slowest_rank, -1);
  ASSERT_EQ(history.metrics.at("cola/matthews").size(), 1u);
  EXPECT_EQ(history.metrics.at("cola/matthews")[0].y, 0.5);
  ASSERT_EQ(history.curves.at("tokens_per_second").size(), 2u);
}

// A line that someone has edited does not spoil the others.
TEST(RunHistory, ALineWithoutItsTimesIsLeftOutOfThem) {
  const Path path = ScratchDirectory("history") / "metrics.jsonl";
  ReplaceFileDurably(path, R"({"step":1,"loss":4,"tokens_per_second":100,"seconds":1,"mfu":0.5}
{"step":2,"loss":3,"slowest_rank":4294967299}
{"step":18446744073709551615,"loss":9}
{"step":3,"loss":2,"tokens_per_second":300,"seconds":1,"mfu":0.25}
)");
  const RunHistory history = ReadRunHistory(path);
  EXPECT_EQ(history.step, 3);
  EXPECT_EQ(history.loss.size(), 3u);
  EXPECT_EQ(history.damaged_lines, 1);
  EXPECT_EQ(history.seconds, 2);
  EXPECT_EQ(history.tokens_per_second, 200);
  EXPECT_EQ(history.mfu, 0.375);
  EXPECT_EQ(history.slowest_rank, -1);
}

// No double holds it.
TEST(RunHistory, TheLargestStepIsRead) {
  const Path path = ScratchDirectory("history-largest") / "metrics.jsonl";
  ReplaceFileDurably(path, "{\"step\":9223372036854775807,\"loss\":1}\n");
  EXPECT_EQ(ReadRunHistory(path).step, INT64_MAX);
}

TEST(RunHistory, FollowsARunThatGoesOn) {
  const Path path = ScratchDirectory("history-following") / "metrics.jsonl";
  File file = File::OpenForAppend(path);
  file.Write("{\"step\":1,\"loss\":3,\"tokens_per_second\":10,\"seconds\":1}\n{\"step\":2,");
  HistoryReader reader(path);
  reader.Update();
  EXPECT_EQ(reader.history().step, 1);
  file.Write(
      "\"loss\":2,\"tokens_per_second\":20,\"seconds\":1,\"slowest_rank\":3,"
      "\"slowest_rank_seconds\":0.5,\"median_rank_seconds\":0.25}\n");
  reader.Update();
  EXPECT_EQ(reader.history().step, 2);
  EXPECT_EQ(reader.history().loss.size(), 2u);
  EXPECT_EQ(reader.history().tokens_per_second, 15);
  EXPECT_EQ(reader.history().slowest_rank, 3);
  EXPECT_EQ(reader.history().slowest_seconds, 0.5);
  EXPECT_EQ(reader.history().median_seconds, 0.25);
}

TEST(RunHistory, NoFile) {
  const std::string error =
      ErrorOf([&] { ReadRunHistory("/nonexistent/metrics.jsonl"); }, ExitCode::kConfig);
  EXPECT_NE(error.find("/nonexistent"), std::string::npos);
}

}  // namespace
}  // namespace syntra
