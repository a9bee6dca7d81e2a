// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.h"
#include "base/median.h"
#include "core/busy_cores.h"
#include "run/stragglers.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class LogHook : public Hook {
 public:
  LogHook(RunContext& run, TrainingState& state)
      : run_(run), state_(state), stragglers_(run.hosts) {}

  bool AfterStep(const StepReport& report) override {
    LookWhetherCoresAreBusy();
    if (!run_.is_chief()) return true;
    run_.chief->lock.CheckHeld();
    Report(report);
    if (const auto warning = stragglers_.Add(report.result.rank_seconds)) {
      Log().warn("{}", *warning);
    }
    return true;
  }
  bool ReadsParametersAfter(const StepReport&) const override { return false; }

 private:
  void Report(const StepReport& report) {
    const StepResult& result = report.result;
    if (result.skipped) run_.chief->records->WriteEvent("skip", report.step);
    run_.chief->progress->Step(
        {.step = report.step,
         .loss = result.sums.PerToken(),
         .grad_norm = result.gradient_norm,
         .learning_rate = result.learning_rate,
         .slots = result.slots,
         .flops = result.flops,
         .seconds = report.seconds,
         .data_seconds = result.phases[static_cast<size_t>(StepPhase::kData)],
         .sync_seconds = result.sync_seconds});
    NamedValues values{{"loss", result.sums.PerToken()},
                       {"grad_norm", result.gradient_norm},
                       {"learning_rate", result.learning_rate},
                       {"tokens_per_second", result.slots / report.seconds},
                       {"seconds", report.seconds},
                       {"mfu", result.flops / (report.seconds * state_.peak_flops)},
                       {"z_loss", result.sums.z_loss / result.sums.tokens},
                       {"target_tokens", result.sums.tokens},
                       {"skipped", result.skipped ? 1.0 : 0.0}};
    for (size_t i = 0; i < kStepPhases.size(); ++i) {
      values.push_back({SecondsField(kStepPhases[i]), result.phases[i]});
    }
    AddRanks(result.rank_seconds, &values);
    if (state_.replica.model().ponders()) values.push_back({"ponder_loss", result.sums.penalty});
    run_.chief->records->Write(report.step, values);
  }

  // Which rank the others waited for, and for how long.
  static void AddRanks(const std::vector<double>& seconds, NamedValues* values) {
    if (seconds.size() < 2) return;
    const auto slowest = std::ranges::max_element(seconds);
    values->push_back({"slowest_rank", static_cast<double>(slowest - seconds.begin())});
    values->push_back({"slowest_rank_seconds", *slowest});
    values->push_back({"median_rank_seconds", Median(seconds)});
  }

  RunContext& run_;
  TrainingState& state_;
  Stragglers stragglers_;
};

}  // namespace

std::unique_ptr<Hook> MakeLogHook(RunContext& run, TrainingState& state) {
  return std::make_unique<LogHook>(run, state);
}

}  // namespace syntra
