// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"
#include "base/log.h"
#include "core/thread.h"
#include "train/describe.h"
#include "train/hooks.h"
#include "train/stragglers.h"

namespace syntra {
namespace {

class LogHook : public Hook {
 public:
  LogHook(RunContext& run, TrainingState& state, std::string data)
      : run_(run), state_(state), data_(std::move(data)) {}

  bool Start(int64_t step) override {
    const std::vector<std::string> hosts = run_.ranks.Gather(HostName());
    if (!run_.is_chief()) return true;
    stragglers_.emplace(hosts);
    const Config& config = run_.config;
    const RunStart start{.step = step,
                         .data = data_,
                         .rows_in_epoch = state_.data.RowsInEpoch(0),
                         .hosts = hosts,
                         .threads = ThreadCount(),
                         .backend = std::string(run_.backend.name())};
    for (const std::string& line : DescribeStart(config, start)) Log().info("{}", line);
    DescribeRun(run_.directory, run_.identity.run_id, config, run_.ranks.size(),
                run_.identity.initial);
    run_.chief->status.Start(step);
    run_.chief->metrics.emplace(run_.directory.metrics(), step);
    run_.chief->events.emplace(run_.directory.events(), step + 1);
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

 private:
  void Report(const StepReport& report) {
    const StepResult& result = report.result;
    run_.chief->progress->Step({.step = report.step,
                                .loss = result.sums.PerToken(),
                                .grad_norm = result.gradient_norm,
                                .learning_rate = result.learning_rate,
                                .tokens = result.slots,
                                .flops = result.flops,
                                .seconds = report.seconds,
                                .data_seconds = report.data_seconds,
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
    if (state_.replica.model().ponders()) values.emplace_back("ponder_loss", result.sums.penalty);
    run_.chief->Record(report.step, values);
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
