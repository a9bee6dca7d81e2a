// SPDX-License-Identifier: Apache-2.0
// Requests to stop while no step is running: during preparation and evaluations. The run ends at
// once on all ranks, and the same command continues it as if there had been no request.
#include <signal.h>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class EarlyStop : public TinyRun {
 protected:
  // Stops run "run" with this failpoint, at this step.
  void ExpectStops(const std::string& failpoint, int64_t step, StartOptions options = {}) {
    options.environment = {"SYNTRA_FAILPOINT=" + failpoint};
    const Outcome outcome = Run(Pretrain("run", kRarely), options);
    ASSERT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_NE(outcome.out.find("stopped on request; the same command continues"), std::string::npos)
        << outcome.out;
    EXPECT_EQ(NewestStep("run"), step);
  }
  void ExpectContinuesExactly(const StartOptions& options = {}) {
    Train("run", kRarely, options);
    Train("straight", kRarely, options);
    EXPECT_EQ(Trace(Directory("run"), 20), Trace(Directory("straight"), 20));
    EXPECT_EQ(Evaluations("run"), (std::vector<int64_t>{0, 10, 20}));
  }
  // Steps with an evaluation in the log.
  std::vector<int64_t> Evaluations(const std::string& name) const {
    std::vector<int64_t> steps;
    for (const auto& line : Metrics(name)) {
      if (line.contains("validation_log_perplexity")) steps.push_back(line.at("step"));
    }
    return steps;
  }
  // Long enough that preparing it is reported before its shard is done.
  void LengthenTraining() {
    const std::string once = ReadWholeFile(training_);
    std::string text;
    for (int i = 0; i < 10; ++i) text += once;
    ReplaceFileDurably(training_, text);
  }
  static bool CanUse(int ranks) { return ranks == 1 || !MpirunPath().empty(); }

  const Arguments kRarely{"evaluation.every=10", "checkpoint.every=0"};
};

TEST_F(EarlyStop, WhilePreparing) {
  LengthenTraining();
  struct Case {
    int ranks;
    const char* failpoint;
  };
  // One of two ranks makes the shard and one waits for it; either may be asked.
  for (const Case& each :
       {Case{1, "stop_prepare@1"}, Case{2, "stop_prepare@1:0"}, Case{2, "stop_prepare@1:1"}}) {
    if (!CanUse(each.ranks)) continue;
    SCOPED_TRACE(each.failpoint);
    for (const char* name : {"run", "straight", "prepared"}) RemoveAll(Directory(name));
    ExpectStops(each.failpoint, -1, {.ranks = each.ranks});
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared/train/train.jsonl.tokens"));
    ExpectContinuesExactly({.ranks = each.ranks});
  }
}

TEST_F(EarlyStop, InTheFirstEvaluation) {
  for (const int ranks : {1, 2}) {
    if (!CanUse(ranks)) continue;
    for (const char* name : {"run", "straight"}) RemoveAll(Directory(name));
    ExpectStops("stop_evaluation@0", 0, {.ranks = ranks});
    EXPECT_EQ(LastLoggedStep("run"), -1);
    ExpectContinuesExactly({.ranks = ranks});
  }
}

TEST_F(EarlyStop, InAnEvaluationOnTheWay) {
  for (const int ranks : {1, 2}) {
    if (!CanUse(ranks)) continue;
    for (const char* name : {"run", "straight"}) RemoveAll(Directory(name));
    ExpectStops("stop_evaluation@10", 10, {.ranks = ranks});
    EXPECT_EQ(LastLoggedStep("run"), 10);
    EXPECT_EQ(Evaluations("run"), (std::vector<int64_t>{0}));
    ExpectContinuesExactly({.ranks = ranks});
  }
}

// All steps are made and saved, but the run is not done.
TEST_F(EarlyStop, InTheLastEvaluation) {
  ExpectStops("stop_evaluation@20", 20);
  EXPECT_EQ(Evaluations("run"), (std::vector<int64_t>{0, 10}));
  ExpectContinuesExactly();
  const Outcome again = Run(Pretrain("run", kRarely));
  EXPECT_NE(again.out.find("is done: 20 of 20 steps"), std::string::npos) << again.out;
}

TEST_F(EarlyStop, ByAFile) {
  CreateDirectories(Directory("run"));
  ReplaceFileDurably(Directory("run") / "STOP", "");
  const Outcome outcome = Run(Pretrain("run", kRarely));
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_EQ(NewestStep("run"), -1);
  EXPECT_FALSE(std::filesystem::exists(Directory("run") / "STOP"));
  ExpectContinuesExactly();
}

TEST_F(EarlyStop, TheCommandPrepare) {
  constexpr int kFiles = 1000;
  for (int i = 0; i < kFiles; ++i) {
    ReplaceFileDurably(scratch_ / fmt::format("corpus/part-{}.txt", i), "aa ba ca\n");
  }
  const Path output = scratch_ / "shards";
  const Arguments arguments{"prepare",
                            "--config",
                            config_.string(),
                            "--set",
                            "data.train=" + (scratch_ / "corpus/part-*").string(),
                            "--output",
                            output.string()};
  Program program(scratch_, arguments);
  const auto shards = [&] {
    std::error_code code;
    const std::filesystem::directory_iterator files(output / "train", code);
    return std::count_if(begin(files), end(files),
                         [](const auto& file) { return file.path().extension() == ".tokens"; });
  };
  ASSERT_TRUE(WaitUntil([&] { return shards() > 0 || !program.running(); }));
  program.Signal(SIGTERM);
  const Outcome stopped = program.Wait();
  EXPECT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_TRUE(stopped.Says("the same command goes on")) << stopped.err;
  const auto made = shards();
  EXPECT_LT(made, kFiles);
  const Outcome rest = Run(arguments);
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find(fmt::format("({} made, {} kept)", kFiles - made, made)),
            std::string::npos)
      << rest.out;
}

}  // namespace
}  // namespace syntra
