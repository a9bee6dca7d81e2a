// SPDX-License-Identifier: Apache-2.0
// Non-finite gradients, and requests to stop and to save.
#include <signal.h>

#include "base/digest.h"
#include "base/host.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Fault : public TinyRun {};

TEST_F(Fault, ANanGradientIsSkippedOnAllRanksAlike) {
  const std::pair<int, const char*> cases[] = {{1, "NONE"}, {2, "NONE"}, {2, "OPTIMIZER_STATE"}};
  for (const auto& [ranks, sharding] : cases) {
    if (ranks > 1 && MpirunPath().empty()) break;
    const std::string name = fmt::format("{}-ranks-{}", ranks, sharding);
    const Outcome outcome =
        Run(Pretrain(name,
                     {"train.compare_replicas_every=1", std::string("train.sharding=") + sharding}),
            {.ranks = ranks, .environment = {"SYNTRA_FAILPOINT=gradient_nan@3,gradient_nan@7"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(
        outcome.Says("step 3 skipped: the gradient is not finite, first in the gradient of"))
        << outcome.err;
    for (const auto& line : Metrics(name)) {
      if (!line.contains("skipped")) continue;
      const int64_t step = line.at("step");
      EXPECT_EQ(line.at("skipped").get<double>(), step == 3 || step == 7 ? 1 : 0) << step;
      EXPECT_EQ(line.at("grad_norm").is_null(), step == 3 || step == 7) << step;
      EXPECT_TRUE(line.at("loss").is_number());
    }
  }
}

// A skipped step is a step: a run killed after it continues exactly.
TEST_F(Fault, SkippedStepsResumeExactly) {
  const StartOptions options{.environment = {"SYNTRA_FAILPOINT=gradient_nan@3,gradient_nan@12"}};
  Train("straight", {}, options);
  {
    Program run(scratch_, Pretrain("broken"), options);
    ASSERT_TRUE(WaitUntil([&] { return HasCheckpoint("broken", 10) || !run.running(); }));
    run.Kill();
  }
  Train("broken", {}, options);
  EXPECT_EQ(Trace(Directory("broken"), 20), Trace(Directory("straight"), 20));
}

TEST_F(Fault, TooManySkippedStepsEndTheRun) {
  const Outcome outcome =
      Run(Pretrain("run", {"train.max_skipped_steps=3", "train.max_rollbacks=0"}),
          {.environment = {"SYNTRA_FAILPOINT=gradient_nan@4-20"}});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("4 of the last 100 steps")) << outcome.err;
  EXPECT_EQ(LastLoggedStep("run"), 7);
  const std::string log = ReadWholeFile(Directory("run") / "log/rank-0000.log");
  EXPECT_NE(log.find("error 4 of the last 100 steps"), std::string::npos) << log;
}

// The limit holds for the run, however often it is restarted.
TEST_F(Fault, SkippedStepsAreCountedOverRestarts) {
  const Arguments limit{"train.max_skipped_steps=3", "train.max_rollbacks=0",
                        "optimizer.schedule.kind=CONSTANT"};
  const auto until = [&](int step) {
    Arguments settings = limit;
    settings.push_back(fmt::format("train.steps={}", step));
    return Run(Pretrain("run", settings), {.environment = {"SYNTRA_FAILPOINT=gradient_nan@4-20"}});
  };
  EXPECT_EQ(until(5).code, 0);
  EXPECT_EQ(until(6).code, 0);
  const Outcome outcome = until(20);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("4 of the last 100 steps")) << outcome.err;
  EXPECT_EQ(LastLoggedStep("run"), 7);
  // A checkpoint that does not say has skipped none.
  const Path manifest = CheckpointPath("run", 6) / "MANIFEST";
  std::string text = ReadWholeFile(manifest);
  const size_t at = text.find("  \"skipped_steps\": \"4 5 6\",\n");
  ASSERT_NE(at, std::string::npos) << text;
  text.erase(at, text.find('\n', at) + 1 - at);
  text.resize(text.rfind("xxh3-128 "));
  ReplaceFileDurably(manifest, text + "xxh3-128 " + ToHex(DigestOf(text)) + "\n");
  EXPECT_EQ(until(9).code, 0);
  EXPECT_EQ(until(10).code, 6);
}

TEST_F(Fault, TooManySkippedStepsEndAllRanks) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Outcome outcome = Run(Pretrain("run", {"train.max_skipped_steps=3"}),
                              {.ranks = 2, .environment = {"SYNTRA_FAILPOINT=gradient_nan@4-20"}});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
}

TEST_F(Fault, ReplicasThatDifferAreFound) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Arguments settings{"train.compare_replicas_every=4"};
  const Outcome outcome =
      Run(Pretrain("two", settings),
          {.ranks = 2, .environment = {"SYNTRA_FAILPOINT=wrong_parameter@6:1"}});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(outcome.Says("the replicas of the ranks differ after step 8")) << outcome.err;
  // Two ranks have no majority; three have.
  EXPECT_TRUE(outcome.Says("no majority agrees: rank 0 on ")) << outcome.err;
  EXPECT_FALSE(outcome.Says("--exclude")) << outcome.err;
  const Outcome third =
      Run(Pretrain("third", {"train.compare_replicas_every=4", "train.batch_size=6"}),
          {.ranks = 3, .environment = {"SYNTRA_FAILPOINT=wrong_parameter@6:1"}});
  EXPECT_EQ(third.code, 6);
  EXPECT_TRUE(
      third.Says(fmt::format("rank 1 on {0} differs from the other 2. A machine computes "
                             "wrongly; continue without {0} (in Slurm: --exclude={0} of ",
                             HostName())))
      << third.err;
}

// Also of runs shorter than train.compare_replicas_every: all ranks would continue from it, or take
// it for the result.
TEST_F(Fault, NoWrongReplicaIsTheLastCheckpoint) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const auto train = [&](const std::string& name, const char* every, const char* failpoints) {
    return Run(Pretrain(name, {"train.steps=15", "checkpoint.every=0", "evaluation.every=12",
                               std::string("train.compare_replicas_every=") + every}),
               {.ranks = 2, .environment = {std::string("SYNTRA_FAILPOINT=") + failpoints}});
  };
  const Outcome ended = train("ended", "10", "wrong_parameter@14:1");
  EXPECT_EQ(ended.code, 6) << ended.err;
  EXPECT_TRUE(ended.Says("the replicas of the ranks differ after step 15")) << ended.err;
  EXPECT_EQ(NewestStep("ended"), 0);
  const Outcome stopped = train("stopped", "100", "wrong_parameter@11:1,stop_evaluation@12");
  EXPECT_EQ(stopped.code, 6) << stopped.err;
  EXPECT_TRUE(stopped.Says("the replicas of the ranks differ after step 12")) << stopped.err;
  EXPECT_EQ(NewestStep("stopped"), 0);
  EXPECT_EQ(train("off", "0", "wrong_parameter@14:1").code, 0);
}

// A run that continues with a wrong replica would blame a machine for it later.
TEST_F(Fault, RanksThatStartDifferentlyAreFoundBeforeTheFirstStep) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const auto starts = [&](int64_t step) {
    const Outcome outcome =
        Run(Pretrain("run", {"train.steps=6"}),
            {.ranks = 2, .environment = {fmt::format("SYNTRA_FAILPOINT=wrong_start@{}:1", step)}});
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_TRUE(outcome.Says(fmt::format("differ after step {}: ", step))) << outcome.err;
    EXPECT_TRUE(outcome.Says("is not the same on all ranks")) << outcome.err;
  };
  starts(0);
  EXPECT_EQ(NewestStep("run"), -1);
  Train("run", {"train.steps=3"});
  starts(3);
}

TEST_F(Fault, AStragglerIsNamedOnce) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Outcome outcome =
      Run(Pretrain("run"), {.ranks = 2, .environment = {"SYNTRA_FAILPOINT=slow_rank@1-20:1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string warning =
      fmt::format("warning rank 1 on {} slows down all 2 ranks: ", HostName());
  const size_t at = outcome.err.find(warning);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("slows down all", at + warning.size()), std::string::npos)
      << outcome.err;
}

TEST_F(Fault, AWrongFailpointIsSaid) {
  const Outcome outcome =
      Run(Pretrain("run"), {.environment = {"SYNTRA_FAILPOINT=gradient_none@3"}});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
}

class Request : public TinyRun {
 protected:
  // Starts a run too long to end, sends `ask`, and expects it to stop in order; then lets it finish
  // and compares it with one that was never asked. The length differs, so the rate must not depend
  // on it.
  template <typename Ask>
  // `answers`: whether who asks is told that the run stops.
  void ExpectStopsAndContinues(const StartOptions& options, const Ask& ask, bool answers = false) {
    const Arguments endless{"train.steps=1000000", "optimizer.schedule.kind=CONSTANT",
                            "checkpoint.every=0", "evaluation.every=10"};
    Program run(scratch_, Pretrain("run", endless), options);
    ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 5 || !run.running(); }));
    ask(run);
    const Outcome outcome = run.Wait();
    ASSERT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_NE(outcome.out.find("stopped on request; the same command continues"),
              std::string::npos);
    EXPECT_EQ(outcome.Says("Saving, then stopping."), answers) << outcome.err;
    const int64_t stopped = NewestStep("run");
    EXPECT_EQ(stopped, LastLoggedStep("run"));
    const std::string steps = fmt::format("train.steps={}", stopped + 5);
    const Arguments settings{steps, "optimizer.schedule.kind=CONSTANT", "checkpoint.every=0",
                             "evaluation.every=10"};
    Train("run", settings, options);
    Train("straight", settings, options);
    EXPECT_EQ(Trace(Directory("run"), stopped + 5), Trace(Directory("straight"), stopped + 5));
  }
};

TEST_F(Request, Usr1) {
  ExpectStopsAndContinues({}, [](Program& run) { run.Signal(SIGUSR1); });
}
TEST_F(Request, Term) {
  ExpectStopsAndContinues({}, [](Program& run) { run.Signal(SIGTERM); });
}
TEST_F(Request, Int) {
  ExpectStopsAndContinues(
      {}, [](Program& run) { run.Signal(SIGINT); }, /*answers=*/true);
}
TEST_F(Request, StopFile) {
  ExpectStopsAndContinues({}, [&](Program&) { ReplaceFileDurably(Directory("run") / "STOP", ""); });
  EXPECT_FALSE(std::filesystem::exists(Directory("run") / "STOP"));
}
TEST_F(Request, SignalToOneRank) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  ExpectStopsAndContinues({.ranks = 2}, [](Program& run) {
    const std::vector<pid_t> ranks = run.RankPids();
    ASSERT_EQ(ranks.size(), 2u);
    kill(ranks[1], SIGTERM);
  });
}
TEST_F(Request, SignalToMpirun) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  ExpectStopsAndContinues({.ranks = 2}, [](Program& run) { run.Signal(SIGUSR1); });
}

TEST_F(Request, SaveFileAndUsr2SaveAndGoOn) {
  Program run(scratch_, Pretrain("run", {"train.steps=1000000", "checkpoint.every=0"}));
  ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 3; }));
  ReplaceFileDurably(Directory("run") / "SAVE", "");
  ASSERT_TRUE(WaitUntil([&] { return NewestStep("run") > 0; }));
  const int64_t first = NewestStep("run");
  run.Signal(SIGUSR2);
  ASSERT_TRUE(WaitUntil([&] { return NewestStep("run") > first; }));
  const int64_t saved = NewestStep("run");
  EXPECT_TRUE(WaitUntil([&] { return LastLoggedStep("run") > saved + 2; }));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait().code, 75);
}

TEST_F(Request, TimeLimit) {
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=1000000", "train.stop_after_minutes=0.02"}));
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_EQ(NewestStep("run"), LastLoggedStep("run"));
}

}  // namespace
}  // namespace syntra
