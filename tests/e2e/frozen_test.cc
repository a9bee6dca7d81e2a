// SPDX-License-Identifier: Apache-2.0
// If a rank freezes (SIGSTOP) as it enters a phase, the other rank names it and the phase, and the
// job ends.
#include <algorithm>
#include <optional>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

constexpr double kLimit = 2, kGather = 0.5;

struct Case {
  const char* phase;
  int step;
  const char* waits;  // where the rank says that it hangs that waits for the frozen one
};

struct Job {
  std::unique_ptr<Program> program;
  // When the first report, and when the end of the job was first seen.
  std::optional<double> reported, ended;

  void Look() {
    if (ended) return;
    if (!program->running()) ended = MonotonicSeconds();
    const bool reports = program->Errors().find("watchdog: rank ") != std::string::npos;
    if (!reported && reports) reported = MonotonicSeconds();
  }
};

class Frozen : public TinyRun {
 protected:
  Job Start(const Case& of) const {
    std::string limits = fmt::format("SYNTRA_WATCHDOG={}={},gather={}", of.phase, kLimit, kGather);
    const std::string phase = of.phase;
    if (phase == "step" || phase == "evaluation") limits += fmt::format(",first_steps={}", kLimit);
    const std::string freeze = fmt::format("SYNTRA_FAILPOINT=freeze_{}@{}:1", of.phase, of.step);
    const std::string prepared = "data.prepared=" + Directory(phase).string() + "/prepared";
    return {std::make_unique<Program>(
                scratch_,
                Pretrain(phase, {"train.steps=6", "train.compare_replicas_every=5", prepared}),
                StartOptions{.ranks = 2, .environment = {limits, freeze}}),
            {},
            {}};
  }
};

TEST_F(Frozen, ARankIsNamedInWhateverPhase) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Case cases[] = {{"init", 0, "init: joining the other ranks"},
                        {"prepare", 0, "prepare"},
                        {"load", 0, "load"},
                        {"compare", 5, "compare"},
                        {"step", 3, "step 3: training"},
                        {"evaluation", 5, "evaluation at step 5"},
                        {"save", 5, "save at step 5"},
                        {"end", 0, "end"}};
  // All at once: they wait, mostly.
  std::vector<Job> jobs;
  for (const Case& each : cases) jobs.push_back(Start(each));
  EXPECT_TRUE(WaitUntil([&] {
    std::ranges::for_each(jobs, &Job::Look);
    return std::ranges::all_of(jobs, [](const Job& job) { return job.ended.has_value(); });
  }));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Outcome outcome = jobs[i].program->Wait(1);
    SCOPED_TRACE(fmt::format("{}\n{}", cases[i].phase, outcome.err));
    EXPECT_EQ(outcome.code, 7);
    EXPECT_TRUE(outcome.Says("watchdog: rank 0 "));
    EXPECT_TRUE(outcome.Says(fmt::format(" hangs in {}", cases[i].waits)));
    // The limit by the rank's own clock, from where it entered the phase, and 5 s to the end of the
    // job. The test's clock would count what else this machine has to do.
    EXPECT_TRUE(outcome.Says(fmt::format(" for {} s", kLimit)));
    EXPECT_TRUE(outcome.Says("no report from rank 1: frozen, lost"));
    ASSERT_TRUE(jobs[i].reported && jobs[i].ended);
    EXPECT_LT(*jobs[i].ended - *jobs[i].reported, 5);
  }
}

}  // namespace
}  // namespace syntra
