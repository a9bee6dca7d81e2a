// SPDX-License-Identifier: Apache-2.0
// If a rank freezes (SIGSTOP) as it enters a phase, the other rank names it and the phase, and the
// job ends.
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Frozen : public TinyRun {};

struct Case {
  const char* phase;
  int step;
  const char* waits;  // where the rank says that it hangs that waits for the frozen one
};

TEST_F(Frozen, ARankIsNamedInWhateverPhase) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  constexpr double kLimit = 2, kGather = 0.5;
  const Case cases[] = {{"init", 0, "init: joining the other ranks"},
                        {"prepare", 0, "prepare"},
                        {"load", 0, "load"},
                        {"compare", 5, "compare"},
                        {"step", 3, "step 3: training"},
                        {"evaluation", 5, "evaluation at step 5"},
                        {"save", 5, "save at step 5"},
                        {"end", 0, "end"}};
  // All at once: they wait, mostly.
  std::vector<std::unique_ptr<Program>> jobs;
  for (const Case& each : cases) {
    const std::string limits =
        fmt::format("SYNTRA_WATCHDOG={}={},{}gather={}", each.phase, kLimit,
                    std::string(each.phase) == "step" || std::string(each.phase) == "evaluation"
                        ? fmt::format("first_steps={},", kLimit)
                        : "",
                    kGather);
    jobs.push_back(std::make_unique<Program>(
        scratch_,
        Pretrain(each.phase, {"train.steps=6", "train.compare_replicas_every=5",
                              "data.prepared=" + Directory(each.phase).string() + "/prepared"}),
        StartOptions{.ranks = 2,
                     .environment = {limits, fmt::format("SYNTRA_FAILPOINT=freeze_{}@{}:1",
                                                         each.phase, each.step)}}));
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Outcome outcome = jobs[i]->Wait(60);
    const std::string waits = fmt::format(" hangs in {}", cases[i].waits);
    EXPECT_EQ(outcome.code, 7) << cases[i].phase << "\n" << outcome.err;
    EXPECT_TRUE(outcome.Says("watchdog: rank 0 ") && outcome.Says(waits)) << outcome.err;
    EXPECT_TRUE(outcome.Says("no report from rank 1: frozen, lost")) << outcome.err;
    EXPECT_LT(outcome.seconds, kLimit + 5 + 10) << cases[i].phase;
  }
}

}  // namespace
}  // namespace syntra
