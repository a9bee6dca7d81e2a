// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/median.h"
#include "core/thread.h"
#include "run/stragglers.h"
#include "train/describe.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class LogHook : public Hook {
 public:
  LogHook(RunContext& run, TrainingState& state, std::string data)
      : run_(run), state_(state), data_(std::move(data)) {}

  bool Start(int64_t step) override {
    if (!run_.is_chief()) return true;
    run_.chief->lock.CheckHeld();
    stragglers_.emplace(run_.hosts);
    const Config& config = run_.config;
    const RunStart start{.step = step,
                         .parameters = run_.plan->parameters().element_count(),
                         .data = data_,
                         .rows_in_epoch = state_.data.RowsInEpoch(0),
                         .hosts = run_.hosts,
                         .cpus = run_.cpus,
                         .threads = ThreadCount(),
                         .backend = std::string(run_.backend.name()),
                         .is_faster_in_bf16 = run_.backend.MultipliesBFloat16()};
    for (const std::string& line : DescribeStart(config, start)) Log().info("{}", line);
    DescribeRun(run_.directory, run_.identity.run_id, config, run_.ranks.size(),
                run_.identity.initial);
    const ResumePoint resumed{step, EvaluatesAt(step, config)};
    run_.chief->records.emplace(run_.directory, run_.identity.run_id, config, resumed);
    run_.chief->records->WriteStart(step, SecondsSince(run_.started),
                                    {{"ranks", run_.ranks.size()}, {"host", run_.hosts.front()}});
    run_.chief->progress.emplace(ProgressOptions{.steps = config.train().steps(),
                                                 .log_every = config.train().log_every(),
                                                 .evaluate_every = config.evaluation().every(),
                                                 .save_every = config.checkpoint().every(),
                                                 .peak_flops = state_.peak_flops});
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    if (!run_.is_chief()) return true;
    run_.chief->lock.CheckHeld();
    Report(report);
    if (const auto warning = stragglers_->Add(report.result.rank_seconds)) {
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
  std::string data_;
  std::optional<Stragglers> stragglers_;
};

}  // namespace

std::unique_ptr<Hook> MakeLogHook(RunContext& run, TrainingState& state, std::string data) {
  return std::make_unique<LogHook>(run, state, std::move(data));
}

}  // namespace syntra
