// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/text.h"
#include "train/hooks.h"

namespace syntra {
namespace {

// All ranks hold the same sums, so all decide alike.
class DivergenceHook : public Hook {
 public:
  DivergenceHook(RunContext& run, TrainingState& state) : run_(run), state_(state) {}

  bool AfterStep(const StepReport& report) override {
    const double loss = report.result.sums.PerToken();
    const auto spike = state_.spikes.Add(loss);
    if (spike) {
      Log().warn(
          "step {}: the loss of {:.4g} stands out: {:.1f} deviations above {:.4g}, the "
          "median of the steps before",
          WithThousands(report.step), loss, spike->deviations, spike->median);
    }
    const bool counts = run_.config.train().loss_spikes() == TrainConfig::COUNT;
    state_.skipped.Count(report.step, report.result.skipped || (spike && counts));
    return true;
  }
  bool ReadsParametersAfter(const StepReport&) const override { return false; }

 private:
  RunContext& run_;
  TrainingState& state_;
};

}  // namespace

std::unique_ptr<Hook> MakeDivergenceHook(RunContext& run, TrainingState& state) {
  return std::make_unique<DivergenceHook>(run, state);
}

}  // namespace syntra
