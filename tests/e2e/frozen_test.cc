// SPDX-License-Identifier: Apache-2.0
// If a rank freezes (SIGSTOP) as it enters a phase, the other rank names it and the phase, and the
// job ends.
#include "base/host.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

constexpr double kLimit = 2, kGather = 0.5;

struct Case {
  const char* phase;
  int step;
  const char* waits;  // where the rank says that it hangs that waits for the frozen one
};

class Frozen : public TinyRun {
 protected:
  std::unique_ptr<Program> Start(const Case& of) const {
    std::string limits = fmt::format("SYNTRA_WATCHDOG={}={},gather={}", of.phase, kLimit, kGather);
    const std::string phase = of.phase;
    if (phase == "step" || phase == "evaluation") limits += fmt::format(",first_steps={}", kLimit);
    const std::string freeze = fmt::format("SYNTRA_FAILPOINT=freeze_{}@{}:1", of.phase, of.step);
    const std::string prepared = "data.prepared=" + Directory(phase).string() + "/prepared";
    return std::make_unique<Program>(
        scratch_, Pretrain(phase, {"train.steps=3", "train.compare_replicas_every=1", prepared}),
        StartOptions{.ranks = 2, .environment = {limits, freeze}});
  }
};

TEST_F(Frozen, ARankIsNamedInWhateverPhase) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  // Each where the phase occurs first: what a busy machine has done before has other limits.
  const Case cases[] = {{"init", 0, "init: joining the other ranks"},
                        {"prepare", 0, "prepare"},
                        {"load", 0, "load"},
                        {"compare", 1, "compare"},
                        {"step", 1, "step 1: training"},
                        {"evaluation", 0, "evaluation at step 0"},
                        {"save", 0, "save at step 0"},
                        {"end", 0, "end"}};
  // All at once: they wait, mostly.
  std::vector<std::unique_ptr<Program>> jobs;
  for (const Case& each : cases) jobs.push_back(Start(each));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Outcome outcome = jobs[i]->Wait();
    SCOPED_TRACE(fmt::format("{}\n{}", cases[i].phase, outcome.err));
    EXPECT_EQ(outcome.code, 7);
    EXPECT_TRUE(outcome.Says("watchdog: rank 0 "));
    EXPECT_GE(ReportedSeconds(outcome.err, fmt::format(" hangs in {}", cases[i].waits)), kLimit);
    // Before there is a run directory, ranks do not know each other's hosts.
    const std::string phase = cases[i].phase;
    const std::string host = phase == "init" || phase == "prepare" ? "" : " on " + HostName();
    EXPECT_TRUE(outcome.Says(fmt::format("no report from rank 1{}: frozen, lost", host)));
  }
}

TEST_F(Frozen, ARankThatAnswersIsNamed) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  ASSERT_EQ(Run(Pretrain("run", {"train.steps=3"})).code, 0);
  const StartOptions options{
      .ranks = 2,
      .environment = {fmt::format("SYNTRA_WATCHDOG=answer={},gather={}", kLimit, kGather),
                      "SYNTRA_FAILPOINT=freeze_answer@0:1"},
      .input = "a line\n"};
  const Outcome outcome = Run({"generate", "--checkpoint", Directory("run").string()}, options);
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_GE(ReportedSeconds(outcome.err, " hangs in answer"), kLimit) << outcome.err;
}

// Two evaluations of one batch are too few for a median, so the limit is still that of the first
// ones. The time before a batch does not count as one.
TEST_F(Frozen, OnlyBatchesOfAnEvaluationAreMeasured) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const double first = 8;
  const StartOptions options{
      .ranks = 2,
      .environment = {fmt::format("SYNTRA_WATCHDOG=evaluation=2,first_steps={},gather=0.5", first),
                      "SYNTRA_FAILPOINT=freeze_evaluation@10:1"}};
  const Outcome outcome = Run(
      Pretrain("run", {"train.steps=12", "evaluation.every=5", "evaluation.batches=1"}), options);
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_GE(ReportedSeconds(outcome.err, " hangs in evaluation at step 10"), first) << outcome.err;
}

}  // namespace
}  // namespace syntra
