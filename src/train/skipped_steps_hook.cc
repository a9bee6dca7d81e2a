// SPDX-License-Identifier: Apache-2.0
#include "train/hooks.h"

namespace syntra {
namespace {

class SkippedStepsHook : public Hook {
 public:
  explicit SkippedStepsHook(TrainingState& state) : state_(state) {}

  bool AfterStep(const StepReport& report) override {
    state_.skipped.Count(report.step, report.result.skipped);
    return true;
  }

 private:
  TrainingState& state_;
};

}  // namespace

std::unique_ptr<Hook> MakeSkippedStepsHook(TrainingState& state) {
  return std::make_unique<SkippedStepsHook>(state);
}

}  // namespace syntra
