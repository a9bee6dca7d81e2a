// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class SaveHook : public Hook {
 public:
  SaveHook(RunContext& run, TrainingState& state, bool before_evaluations)
      : run_(run), state_(state), before_evaluations_(before_evaluations) {}

  // The first save finds a full disk or missing rights before any work is lost.
  bool Start(int64_t step) override {
    Save(step, /*must_succeed=*/true);
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    if (report.last || report.stops) return true;  // End or Stop saves
    if (report.result.requests_to_save > 0 || IsDue(report.step)) {
      Save(report.step, /*must_succeed=*/false);
    }
    return true;
  }

  void Stop(int64_t step) override { Save(step, /*must_succeed=*/true); }

  bool End(int64_t step) override {
    Save(step, /*must_succeed=*/true);
    return true;
  }

 private:
  bool IsDue(int64_t step) const {
    const Config& config = run_.config;
    return syntra::IsDue(step, config.checkpoint().every()) ||
           (before_evaluations_ && syntra::IsDue(step, config.evaluation().every()));
  }

  void Save(int64_t step, bool must_succeed) {
    if (state_.saved_step == step) return;
    const Watchdog::Phase phase(run_.watchdog, RunPhase::kSave, step, state_.replica.bytes());
    // A communicator that lost a rank may leave wrong sums in a device and shows it in its next
    // call: that call comes when all sums are done, and before they are kept.
    run_.backend.device().Wait();
    run_.ranks.Barrier();
    StateCollection collection(state_.replica, run_.ranks);
    double failed = 0;
    if (run_.is_chief()) {
      failed = !TrySave(step, must_succeed, collection);
      collection.Finish();
    } else {
      collection.Serve();
    }
    run_.ranks.AllReduceMax(std::span(&failed, 1));
    if (failed == 0) state_.saved_step = step;
  }

  // Rank 0 alone writes.
  bool TrySave(int64_t step, bool must_succeed, StateCollection& collection) {
    Chief& chief = *run_.chief;
    const CheckpointConfig& config = run_.config.checkpoint();
    const auto start = Clock::now();
    chief.lock.CheckHeld();
    try {
      // The run that continues from here keeps the lines up to here.
      chief.metrics->Sync();
      SaveSnapshot(run_.directory.checkpoints(), run_.identity, PositionAt(step), collection,
                   config);
      failed_in_a_row_ = 0;
      chief.status.Progress(step);
      chief.progress->Saved(SecondsSince(start));
      return true;
    } catch (const Error& error) {
      ++failed_in_a_row_;
      if (must_succeed || error.code() == ExitCode::kDiverged ||
          failed_in_a_row_ >= config.max_failed_saves()) {
        throw;
      }
      Log().error("checkpoint at step {} failed ({} of {} in a row): {}", step, failed_in_a_row_,
                  config.max_failed_saves(), error.what());
      return false;
    }
  }

  RunPosition PositionAt(int64_t step) const {
    return {.step = step,
            .skipped_steps = state_.skipped.ToText(),
            .data_position = state_.data.PositionAt(step, run_.config.train().batch_size())};
  }

  RunContext& run_;
  TrainingState& state_;
  bool before_evaluations_;
  int failed_in_a_row_ = 0;
};

}  // namespace

std::unique_ptr<Hook> MakeSaveHook(RunContext& run, TrainingState& state, bool before_evaluations) {
  return std::make_unique<SaveHook>(run, state, before_evaluations);
}

}  // namespace syntra
