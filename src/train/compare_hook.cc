// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "run/common_error.h"
#include "run/odd_ranks.h"
#include "train/agreement.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class CompareHook : public Hook {
 public:
  CompareHook(RunContext& run, TrainingState& state) : run_(run), state_(state) {}

  void Check(int64_t step) override {
    const OddRanks odd = FindDifference(step);
    if (odd.text.empty()) return;
    Fail(ExitCode::kDiverged,
         "the replicas of the ranks differ after step {}: {}. The run's checkpoint, or "
         "checkpoint.initial, is not the same on all ranks",
         step, odd.text);
  }

  bool ReadsParametersAfter(const StepReport& report) const override {
    return IsDue(report.step, run_.config.train().compare_replicas_every());
  }

  bool AfterStep(const StepReport& report) override {
    if (ReadsParametersAfter(report)) Compare(report.step);
    return true;
  }

  // Where the run stops or ends, before the last state is saved.
  void Stop(int64_t step) override { CompareLast(step); }
  bool End(int64_t step) override {
    CompareLast(step);
    return true;
  }

 private:
  void CompareLast(int64_t step) {
    if (run_.config.train().compare_replicas_every() > 0 && compared_step_ != step) Compare(step);
  }

  void Compare(int64_t step) {
    const OddRanks odd = FindDifference(step);
    if (odd.text.empty()) return;
    std::string message = fmt::format(
        "the replicas of the ranks differ after step {}: {}. A machine computes wrongly", step,
        odd.text);
    if (!odd.hosts.empty()) {
      message += fmt::format(
          "; continue without {0} (in Slurm: --exclude={0} of srun, sbatch and syntra slurm)",
          Join(odd.hosts, ","));
    }
    throw CommonError(ExitCode::kDiverged, message);
  }

  // The text is empty if all are equal; otherwise rank 0 alone says more.
  OddRanks FindDifference(int64_t step) {
    compared_step_ = step;
    if (run_.ranks.size() == 1) return {};
    const Watchdog::Phase phase(run_.watchdog, RunPhase::kCompare, step);
    const TraceSpan span(run_.trace, TraceLane::kTraining, "compare replicas", step);
    const std::vector<uint64_t> digests =
        GatherDigests(run_.ranks, state_.replica.ParameterDigest());
    if (std::ranges::count(digests, digests.front()) == std::ssize(digests)) return {};
    if (!run_.is_chief()) return {"see what rank 0 says", {}};
    return FindOddRanks(digests, run_.hosts);
  }

  RunContext& run_;
  TrainingState& state_;
  int64_t compared_step_ = -1;  // the last one
};

}  // namespace

std::unique_ptr<Hook> MakeCompareHook(RunContext& run, TrainingState& state) {
  return std::make_unique<CompareHook>(run, state);
}

}  // namespace syntra
