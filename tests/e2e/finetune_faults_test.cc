// SPDX-License-Identifier: Apache-2.0
// Finetuning where what an evaluation finds cannot be written.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/layout.h"
#include "tests/base/strace.h"
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using Finetune = ToyTask;

// As where a disk is full for a while.
TEST_F(Finetune, AnEvaluationThatCannotBeRecordedDoesNotEndTheRun) {
  const Path obstacle = Directory("a") / "predictions";
  CreateDirectories(Directory("a"));
  ReplaceFileDurably(obstacle, "");
  // The last one must be recorded.
  const Outcome ended = Run(Command("a", {"evaluation.at_start=false"}));
  EXPECT_EQ(ended.code, 4);
  for (const char* said : {"record of the evaluation at step 4 failed (1 of 3 in a row)",
                           "record of the evaluation at step 8 failed (2 of 3 in a row)"}) {
    EXPECT_TRUE(ended.Says(said)) << ended.err;
  }
  std::vector<int64_t> unsaved;
  for (const Json& line : Metrics("a")) {
    if (line.contains("toy_unsaved")) unsaved.push_back(line.at("step"));
  }
  EXPECT_EQ(unsaved, (std::vector<int64_t>{4, 8}));
  EXPECT_TRUE(Results("a").at("best_steps").empty());
  std::filesystem::remove(obstacle);
  ASSERT_EQ(Run(Command("a")).code, 0);
  EXPECT_EQ(Results("a").at("best_steps").at("toy"), 12);
  EXPECT_TRUE(Exists(Directory("a") / "best/toy" / StepName(12)));
}

TEST_F(Finetune, EvaluationsThatCannotBeRecordedAreLimited) {
  CreateDirectories(Directory("a"));
  ReplaceFileDurably(Directory("a") / "best", "");
  const Outcome ended =
      Run(Command("a", {"evaluation.at_start=false", "checkpoint.max_failed_saves=2"}));
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(ended.Says((Directory("a") / "best").string())) << ended.err;
  // The predictions are those of the best model, and there is none.
  EXPECT_TRUE(DirectoryNames(Directory("a") / "predictions").empty());
  EXPECT_EQ(ListCheckpoints(Directory("a") / "checkpoints").back().step, 8);
}

// What a run says of a model that could not be saved holds for the run that continues it.
TEST_F(Finetune, AnEvaluationThatDoesNotCountStaysSo) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  const auto run_without_8 = [&](const std::string& name,
                                 const std::vector<std::string>& environment) {
    // Of a rename strace sees only where it comes from; before it the save looks for an older one.
    return Run(Command(name),
               {.environment = environment,
                .wrapper = {"strace", "-f", "-o", "/dev/null", "-P", CheckpointPath(name, 8), "-e",
                            "inject=newfstatat:error=EIO"}});
  };
  const Outcome whole = run_without_8("whole", {});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(whole.Says("the evaluation at step 8 does not count as the best")) << whole.err;
  const Outcome stopped = run_without_8("parts", {"SYNTRA_FAILPOINT=stop_evaluation@12"});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  // Not even with the best values of all.
  std::string log = File("parts", "metrics.jsonl");
  const size_t unsaved = log.find(R"("toy_unsaved":1)");
  ASSERT_NE(unsaved, std::string::npos) << log;
  const std::string accuracy = R"("toy/accuracy":)";
  log.insert(log.rfind(accuracy, unsaved) + accuracy.size(), "5");
  ReplaceFileDurably(Directory("parts") / "metrics.jsonl", log);
  const Outcome continued = Run(Command("parts"));
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(File("whole", "results.json"), File("parts", "results.json"));
}

}  // namespace
}  // namespace syntra
