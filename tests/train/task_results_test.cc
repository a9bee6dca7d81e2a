// SPDX-License-Identifier: Apache-2.0
#include "train/task_results.h"

#include <gtest/gtest.h>

#include "checkpoint/layout.h"
#include "tests/base/scratch.h"
#include "train/best_checkpoints.h"
#include "train/metrics_log.h"

namespace syntra {
namespace {

TEST(TaskResults, TheBestIsByTheMeanOfTheValuesAndTheLaterOfEquals) {
  TaskResults results({"mrpc", "cola"});
  EXPECT_TRUE(results.Add(10, {"mrpc", {{"f1", 80}, {"accuracy", 60}}}));
  EXPECT_TRUE(results.Add(20, {"mrpc", {{"f1", 60}, {"accuracy", 80}}}));
  EXPECT_FALSE(results.Add(25, {"mrpc", {{"f1", 60}, {"accuracy", 79}}}));
  EXPECT_EQ(results.Find("mrpc")->step, 20);
  EXPECT_TRUE(results.Add(30, {"mrpc", {{"f1", 70}, {"accuracy", 71}}}));
  EXPECT_TRUE(results.Add(30, {"cola", {{"matthews", -1}}}));
  EXPECT_EQ(results.Find("mrpc")->step, 30);
  EXPECT_EQ(results.Find("sst2"), nullptr);
  EXPECT_DOUBLE_EQ(results.Average(), (70.5 - 1) / 2);
  EXPECT_EQ(JsonText(results.ToJson()),
            R"({"tasks":{"mrpc":{"f1":70.0,"accuracy":71.0},"cola":{"matthews":-1.0}},)"
            R"("average":34.75,"step":30,"best_steps":{"mrpc":30,"cola":30}})");
}

// What is read back from metrics.jsonl are the same doubles.
TEST(TaskResults, ComeBackFromTheLog) {
  const Path path = ScratchDirectory("results") / "metrics.jsonl";
  {
    MetricsLog log(path, 0);
    log.Write(1, {{"loss", 3}});
    log.Write(1, {{"cola/matthews", 100.0 / 3}, {"cola_invalid", 50}});
    log.Write(2, {{"cola/matthews", 20}, {"cola_invalid", 0}});
    log.Write(3, {{"cola/matthews", 90}});
  }
  TaskResults results({"cola"});
  results.AddHistory(path, 3);
  ASSERT_NE(results.Find("cola"), nullptr);
  EXPECT_EQ(results.Find("cola")->step, 1);
  ASSERT_EQ(results.Find("cola")->result.values.size(), 1u);
  EXPECT_EQ(results.Find("cola")->result.values[0].name, "matthews");
  EXPECT_EQ(results.Find("cola")->result.values[0].value, 100.0 / 3);
  EXPECT_EQ(results.last_step(), 2);
}

TEST(BestCheckpoints, OutliveThePruningAndTakeEachOthersPlace) {
  const Path root = ScratchDirectory("results"), checkpoints = root / "checkpoints";
  for (const int step : {1, 2}) {
    CreateDirectories(checkpoints / StepName(step));
    ReplaceFileDurably(checkpoints / StepName(step) / "MANIFEST", std::to_string(step));
  }
  BestCheckpoints best(root / "best", checkpoints);
  best.Keep("cola", 1);
  RemoveAll(checkpoints / StepName(1));
  EXPECT_EQ(ReadWholeFile(best.DirectoryOf("cola") / StepName(1) / "MANIFEST"), "1");
  best.Keep("cola", 2);
  best.Keep("cola", 2);
  const std::vector<CheckpointRef> kept = ListCheckpoints(best.DirectoryOf("cola"));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].step, 2);
}

}  // namespace
}  // namespace syntra
