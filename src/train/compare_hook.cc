// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class CompareHook : public Hook {
 public:
  CompareHook(RunContext& run, TrainingState& state) : run_(run), state_(state) {}

  bool Start(int64_t step) override {
    Compare(step, "its checkpoint, or checkpoint.initial, is not the same on all ranks");
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    if (IsDue(report.step, run_.config.train().compare_replicas_every())) {
      Compare(report.step, "a machine computes wrongly");
    }
    return true;
  }

 private:
  void Compare(int64_t step, const char* reason) {
    if (run_.ranks.size() == 1) return;
    const Watchdog::Phase phase(run_.watchdog, RunPhase::kCompare, step);
    if (AgreeOnDigest(run_.ranks, state_.replica.ParameterDigest())) return;
    Fail(ExitCode::kDiverged, "the replicas of the ranks differ after step {}; {}", step, reason);
  }

  RunContext& run_;
  TrainingState& state_;
};

}  // namespace

std::unique_ptr<Hook> MakeCompareHook(RunContext& run, TrainingState& state) {
  return std::make_unique<CompareHook>(run, state);
}

}  // namespace syntra
