// SPDX-License-Identifier: Apache-2.0
// When a run saves, and what all ranks know of a save.
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/layout.h"
#include "run/common_error.h"
#include "train/hooks.h"
#include "train/save_writer.h"

namespace syntra {
namespace {

// The outcome of a save, from the best to the worst.
enum class SaveOutcome { kWriting, kSaved, kFailed, kNotFinite };

// How the state is saved after a step, if it is.
std::optional<SaveMode> SaveModeAfter(const StepReport& report, const Config& config) {
  if (report.last || report.stops) return {};  // End or Stop saves
  if (IsDue(report.step, SavedEvaluationsEvery(config))) {
    return SaveMode::kForeground;  // the best model is kept where it lies on disk
  }
  const CheckpointConfig& checkpoint = config.checkpoint();
  if (report.result.requests_to_save == 0 && !IsDue(report.step, checkpoint.every())) return {};
  return checkpoint.asynchronous() ? SaveMode::kBackground : SaveMode::kForeground;
}

class SaveHook : public Hook {
 public:
  SaveHook(RunContext& run, TrainingState& state) : run_(run), state_(state), writer_(run, state) {}

  // The first save finds a full disk or missing rights before any work is lost.
  bool Start(int64_t step) override {
    Save(step, SaveMode::kMustSucceed);
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    if (writer_.writes_parts()) {
      const Watchdog::Phase phase = Phase(writer_.step());
      writer_.CommitIfWritten();
    } else if (is_writing_) {
      LearnOutcome();
    }
    if (const auto mode = SaveModeAfter(report, run_.config)) Save(report.step, *mode);
    return true;
  }

  bool ReadsParametersAfter(const StepReport& report) const override {
    return SaveModeAfter(report, run_.config).has_value();
  }

  void Stop(int64_t step) override { Save(step, SaveMode::kMustSucceed); }

  // The checkpoint to which a run goes back must not depend on how fast a checkpoint was written,
  // and no rank may end the job while another is writing.
  void Settle() override {
    const Watchdog::Phase phase = Phase(writer_.step());
    try {
      writer_.Finish();
    } catch (const std::exception& error) {  // there is a worse one already
      LogFailure(error);
    }
    run_.ranks.Barrier();
    is_writing_ = false;
  }

  // Finishes a save already in progress. If it needs other ranks, only this rank's part is
  // finished. The error is reported first, and the other ranks wait.
  void Leave(const Failure& failure) noexcept override {
    const bool chief_writes = !run_.is_chief() && is_writing_ && !writer_.writes_parts();
    if (!writer_.is_busy() && !chief_writes) return;
    try {
      const double bytes = state_.replica.plan().checkpoint_bytes();
      const double seconds = run_.watchdog.Allowed(RunPhase::kSave, bytes);
      Log().error(
          "what is being written of the checkpoint at step {} is finished before the run ends by "
          "this error: {}",
          writer_.step(), failure.message);
      run_.watchdog.EndsWith(failure.code, seconds + kSecondsToEnd);
      run_.ranks.AbortsWithin(seconds + kSecondsToEnd);
      const Watchdog::Phase phase = Phase(writer_.step());
      if (chief_writes) WaitForChief(seconds);
      writer_.FinishAlone();
    } catch (const std::exception& error) {
      LogFailure(error);
    }
  }

  bool End(int64_t step) override {
    Save(step, SaveMode::kMustSucceed);
    return true;
  }

 private:
  // For what a rank does between the end of a save and that of the job.
  static constexpr double kSecondsToEnd = 15;

  Watchdog::Phase Phase(int64_t step) {
    return {run_.watchdog, RunPhase::kSave, step, state_.replica.plan().checkpoint_bytes()};
  }

  void LogFailure(const std::exception& error) const {
    Log().error("checkpoint at step {} failed: {}", writer_.step(), error.what());
  }

  void Save(int64_t step, SaveMode mode) {
    const Watchdog::Phase phase = Phase(step);
    const TraceSpan span(run_.trace, TraceLane::kTraining, "save", step);
    const auto start = Clock::now();
    writer_.Finish();
    if (is_writing_) LearnOutcome();
    if (state_.saved_step == step) return;
    // A communicator that lost a rank may have left wrong sums on the device, and reports it only
    // in its next call. So wait for all sums, then make a call, before anything is saved.
    run_.backend.device().Wait();
    run_.ranks.Barrier();
    bool failed = !writer_.Begin(step, mode);
    if (mode != SaveMode::kBackground) {
      writer_.Finish(mode);
      failed |= writer_.TakeFailure();
    }
    if (run_.is_chief() && !failed) run_.chief->progress->Saved(SecondsSince(start));
    if (Share(failed ? SaveOutcome::kFailed : SaveOutcome::kSaved) == SaveOutcome::kFailed) return;
    state_.saved_step = step;
    is_writing_ = mode == SaveMode::kBackground;
  }

  // Shares with all ranks what rank 0 knows of a save. All ranks throw together if the state was
  // not fit to be saved.
  SaveOutcome Share(SaveOutcome outcome) {
    std::string diverged = writer_.diverged();
    if (!diverged.empty()) outcome = SaveOutcome::kNotFinite;
    const auto known = run_.is_chief() ? static_cast<int64_t>(outcome) : 0;
    outcome = static_cast<SaveOutcome>(LargestOfRanks(run_.ranks, known));
    if (outcome == SaveOutcome::kNotFinite) {
      BroadcastText(run_.ranks, &diverged);
      throw CommonError(ExitCode::kDiverged, diverged);
    }
    return outcome;
  }

  // After each step, until all ranks know what became of the save in the background.
  void LearnOutcome() {
    const bool is_writing = writer_.IsWriting();
    const bool failed = !is_writing && writer_.TakeFailure();
    const SaveOutcome outcome = Share(is_writing ? SaveOutcome::kWriting
                                      : failed   ? SaveOutcome::kFailed
                                                 : SaveOutcome::kSaved);
    is_writing_ = outcome == SaveOutcome::kWriting;
    if (outcome == SaveOutcome::kFailed) state_.saved_step.reset();
  }

  // Rank 0 writes in the background, and would be ended with the job. This rank can no longer talk
  // to it, so it watches the directory for the finished checkpoint.
  void WaitForChief(double seconds) const {
    const Path checkpoint = run_.directory.checkpoints() / StepName(writer_.step());
    run_.watchdog.Activity("waiting for rank 0 to write it");
    const auto start = Clock::now();
    while (!Exists(checkpoint) && SecondsSince(start) < seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      run_.watchdog.Alive();
    }
  }

  RunContext& run_;
  TrainingState& state_;
  SaveWriter writer_;
  bool is_writing_ = false;  // in the background, as far as all ranks know
};

}  // namespace

std::unique_ptr<Hook> MakeSaveHook(RunContext& run, TrainingState& state) {
  return std::make_unique<SaveHook>(run, state);
}

}  // namespace syntra
