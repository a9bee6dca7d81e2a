// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>

#include <future>
#include <thread>

#include "base/clock.h"
#include "base/failure.h"
#include "base/log.h"
#include "checkpoint/layout.h"
#include "core/thread.h"
#include "run/failpoint.h"
#include "train/hooks.h"
#include "train/shared_snapshot.h"
#include "train/state_copy.h"

namespace syntra {
namespace {

// In the background, a copy of the state is written by a thread of its own while the next steps
// run. In the foreground, the run waits until the checkpoint is there.
enum class SaveMode { kBackground, kForeground, kMustSucceed };

// The outcome of a save, from the best to the worst.
enum class SaveOutcome { kWriting, kSaved, kFailed, kNotFinite };

class SaveHook : public Hook {
 public:
  SaveHook(RunContext& run, TrainingState& state)
      : run_(run),
        state_(state),
        is_shared_(state.replica.plan().shards() > 1),
        mode_(run.config.checkpoint().asynchronous() ? SaveMode::kBackground
                                                     : SaveMode::kForeground),
        shared_(run) {}

  // The first save finds a full disk or missing rights before any work is lost.
  bool Start(int64_t step) override {
    Save(step, SaveMode::kMustSucceed);
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    if (part_.valid()) {
      CommitIfWritten();
    } else if (is_writing_) {
      LearnOutcome();
    }
    if (const std::optional<SaveMode> mode = ModeAfter(report)) Save(report.step, *mode);
    return true;
  }

  bool ReadsParametersAfter(const StepReport& report) const override {
    return ModeAfter(report).has_value();
  }

  void Stop(int64_t step) override { Save(step, SaveMode::kMustSucceed); }

  // The checkpoint to which a run goes back must not depend on how fast a checkpoint was written,
  // and no rank may end the job while another is writing.
  void Settle() override {
    const Watchdog::Phase phase = Phase(saving_step_);
    try {
      FinishLast();
    } catch (const std::exception& error) {  // there is a worse one already
      Log().error("checkpoint at step {} failed: {}", saving_step_, error.what());
    }
    run_.ranks.Barrier();
    is_writing_ = false;
  }

  // Finishes a save already in progress. If it needs other ranks, only this rank's part is
  // finished. The error is reported first, and the other ranks wait.
  void Leave(const Failure& failure) noexcept override {
    const bool chief_writes = !run_.is_chief() && is_writing_ && !part_.valid();
    if (!saving_.valid() && !part_.valid() && !chief_writes) return;
    try {
      const double bytes = state_.replica.plan().checkpoint_bytes();
      const double seconds = run_.watchdog.Allowed(RunPhase::kSave, bytes);
      Log().error(
          "what is being written of the checkpoint at step {} is finished before the run ends by "
          "this error: {}",
          saving_step_, failure.message);
      run_.watchdog.EndsWith(failure.code, seconds + kSecondsToEnd);
      run_.ranks.AbortsWithin(seconds + kSecondsToEnd);
      const Watchdog::Phase phase = Phase(saving_step_);
      if (chief_writes) WaitForChief(seconds);
      if (part_.valid()) part_.wait();
      if (saving_.valid()) saving_.get();
    } catch (const std::exception& error) {
      Log().error("checkpoint at step {} failed: {}", saving_step_, error.what());
    }
  }

  bool End(int64_t step) override {
    Save(step, SaveMode::kMustSucceed);
    return true;
  }

 private:
  // How the state is saved after a step, if it is.
  std::optional<SaveMode> ModeAfter(const StepReport& report) const {
    if (report.last || report.stops) return {};  // End or Stop saves
    const Config& config = run_.config;
    if (IsDue(report.step, SavedEvaluationsEvery(config))) {
      return SaveMode::kForeground;  // the best model is kept where it lies on disk
    }
    const bool is_due =
        report.result.requests_to_save > 0 || IsDue(report.step, config.checkpoint().every());
    return is_due ? std::optional(mode_) : std::nullopt;
  }

  static constexpr std::chrono::seconds kNoTime{0};
  static constexpr std::chrono::seconds kSlowSaving{12};  // failpoint.h
  static constexpr int64_t kNone = -1;                    // no checkpoint
  // For what a rank does between the end of a save and that of the job.
  static constexpr double kSecondsToEnd = 15;

  static bool IsReady(const auto& future) {
    return future.wait_for(kNoTime) == std::future_status::ready;
  }

  Watchdog::Phase Phase(int64_t step) {
    return {run_.watchdog, RunPhase::kSave, step, state_.replica.plan().checkpoint_bytes()};
  }

  void Save(int64_t step, SaveMode mode) {
    const Watchdog::Phase phase = Phase(step);
    const TraceSpan span(run_.trace, TraceLane::kTraining, "save", step);
    FinishLast();
    if (is_writing_) LearnOutcome();
    if (state_.saved_step == step) return;
    // A communicator that lost a rank may have left wrong sums on the device, and reports it only
    // in its next call. So wait for all sums, then make a call, before anything is saved.
    run_.backend.device().Wait();
    run_.ranks.Barrier();
    const auto start = Clock::now();
    saving_step_ = step;
    bool failed = is_shared_ ? !StartParts(mode) : !StartWhole(mode);
    if (mode != SaveMode::kBackground) {
      FinishLast(mode);
      failed |= std::exchange(last_failed_, false);
    }
    if (run_.is_chief() && !failed) run_.chief->progress->Saved(SecondsSince(start));
    if (Share(failed ? SaveOutcome::kFailed : SaveOutcome::kSaved) == SaveOutcome::kFailed) return;
    state_.saved_step = step;
    is_writing_ = mode == SaveMode::kBackground;
  }

  // Shares with all ranks what rank 0 knows of a save. All ranks throw together if the state was
  // not fit to be saved.
  SaveOutcome Share(SaveOutcome outcome) {
    if (!diverged_.empty()) outcome = SaveOutcome::kNotFinite;
    const auto known = run_.is_chief() ? static_cast<int64_t>(outcome) : 0;
    outcome = static_cast<SaveOutcome>(LargestOfRanks(run_.ranks, known));
    if (outcome == SaveOutcome::kNotFinite) {
      BroadcastText(run_.ranks, &diverged_);
      throw CommonError(ExitCode::kDiverged, diverged_);
    }
    return outcome;
  }

  // Rank 0 writes in the background, and would be ended with the job. This rank can no longer talk
  // to it, so it watches the directory for the finished checkpoint.
  void WaitForChief(double seconds) const {
    const Path checkpoint = run_.directory.checkpoints() / StepName(saving_step_);
    run_.watchdog.Activity("waiting for rank 0 to write it");
    const auto start = Clock::now();
    while (!Exists(checkpoint) && SecondsSince(start) < seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      run_.watchdog.Alive();
    }
  }

  // After each step, until all ranks know what became of the save in the background.
  void LearnOutcome() {
    if (saving_.valid() && IsReady(saving_)) FinishLast();
    const bool is_written = !saving_.valid();
    const bool failed = is_written && std::exchange(last_failed_, false);
    const SaveOutcome outcome = Share(!is_written ? SaveOutcome::kWriting
                                      : failed    ? SaveOutcome::kFailed
                                                  : SaveOutcome::kSaved);
    is_writing_ = outcome == SaveOutcome::kWriting;
    if (outcome == SaveOutcome::kFailed) state_.saved_step = kNone;
  }

  // The tensors that this rank writes: rank 0 alone writes all of the state or, where ranks share
  // it, each rank writes its own part. In the background a copy is written.
  std::vector<TensorRecord> StateToWrite(SaveMode mode) {
    std::vector<HostTensor> state = state_.replica.FetchTensors();
    if (!run_.is_chief()) {
      std::erase_if(state, [](const HostTensor& tensor) {
        return tensor.name.starts_with(kParametersGroup);  // rank 0 writes what all have
      });
    }
    if (mode != SaveMode::kBackground) return RecordsOf(state);
    copy_.Take(state);
    return copy_.tensors();
  }

  // Calls `work` in a thread of its own or, in the foreground, when its result is asked for.
  template <typename Work>
  auto Launch(SaveMode mode, Work work) {
    if (mode != SaveMode::kBackground) return std::async(std::launch::deferred, std::move(work));
    return std::async(std::launch::async, [this, step = saving_step_, trace = run_.trace,
                                           work = std::move(work)] {
      const TraceSpan span(trace, TraceLane::kCheckpoint, "write checkpoint", step);
      pthread_setname_np(pthread_self(), "save");  // what reports of hangs and debuggers call it
      SetThreadCount(1);                           // the others train
      const int rank = run_.ranks.rank(), ranks = run_.ranks.size();
      if (Failpoint("freeze_saving", step, rank, ranks)) raise(SIGSTOP);
      if (Failpoint("slow_saving", step, rank, ranks)) std::this_thread::sleep_for(kSlowSaving);
      return work();
    });
  }

  // Begins a save of rank 0 alone. False where it cannot; true on the others.
  bool StartWhole(SaveMode mode) {
    if (!run_.is_chief()) return true;
    run_.chief->lock.CheckHeld();
    return Try(mode, [&] {
      saving_ = Launch(mode, [this, position = Position(), state = StateToWrite(mode)] {
        SyncRecords();
        SaveSnapshot(run_.directory.checkpoints(), run_.identity, position, state,
                     OptionsOf(run_.config, run_.chief->lock));
      });
    });
  }

  // Begins a save of all ranks. False, on all, where rank 0 cannot.
  bool StartParts(SaveMode mode) {
    std::string begun;
    if (run_.is_chief()) {
      run_.chief->lock.CheckHeld();
      Try(mode, [&] { begun = shared_.Begin(Position(), state_.replica.HostTensors()); });
    }
    BroadcastText(run_.ranks, &begun);
    if (begun.empty()) return false;
    const auto start = Clock::now();
    try {
      part_ = Launch(mode, [this, begun, part = StateToWrite(mode)] {
        return shared_.WritePart(begun, part);
      });
    } catch (const std::exception&) {  // no memory for a copy, or no thread
      std::promise<std::string> failed;
      failed.set_value(SharedSnapshot::Failed());
      part_ = failed.get_future();
    }
    waited_ += SecondsSince(start);
    return true;
  }

  // Whether every rank has written its part is known to all of them, after each step.
  void CommitIfWritten() {
    const Watchdog::Phase phase = Phase(saving_step_);
    if (!AnyRank(run_.ranks, !IsReady(part_))) StartCommit(mode_);
  }

  void StartCommit(SaveMode mode) {
    const auto start = Clock::now();
    const std::vector<std::string> answers = run_.ranks.Gather(part_.get());
    if (!run_.is_chief()) return;
    waited_ += SecondsSince(start);
    const bool begun = Try(mode, [&] {
      saving_ = Launch(mode, [this, answers] {
        SyncRecords();
        shared_.Commit(answers);
      });
    });
    last_failed_ |= !begun;
  }

  // Waits for the save that was begun last, if there is one.
  void FinishLast(SaveMode mode = SaveMode::kBackground) {
    if (part_.valid()) StartCommit(mode);
    if (!saving_.valid()) return;
    last_failed_ = !Try(mode, [&] { saving_.get(); });
    if (!last_failed_) Saved(saving_step_);
  }

  void Saved(int64_t step) {
    failed_in_a_row_ = 0;
    run_.chief->status.Progress(step);
    run_.chief->RecordEvent("save", step, {{"seconds", std::exchange(waited_, 0)}});
  }

  // Counts failures. Those that should end the run are thrown.
  bool Try(SaveMode mode, const std::function<void()>& save) {
    const int most = run_.config.checkpoint().max_failed_saves();
    const auto start = Clock::now();
    try {
      save();
      waited_ += SecondsSince(start);
      return true;
    } catch (const std::exception&) {  // memory and threads can be refused anywhere
      const Failure failure = CurrentFailure();
      if (failure.code == ExitCode::kLocked) throw;  // the directory is another run's
      ++failed_in_a_row_;
      const double waited = std::exchange(waited_, 0) + SecondsSince(start);
      run_.chief->RecordEvent("save_failed", saving_step_,
                              {{"seconds", waited}, {"error", failure.message}});
      if (failure.code == ExitCode::kDiverged) {
        if (run_.ranks.size() == 1) throw;
        diverged_ = failure.message;  // the others learn it after this step
        return false;
      }
      if (mode == SaveMode::kMustSucceed || failed_in_a_row_ >= most) throw;
      Log().error("checkpoint at step {} failed ({} of {} in a row): {}", saving_step_,
                  failed_in_a_row_, most, failure.message);
      return false;
    }
  }

  // The run that continues from the checkpoint keeps the lines up to there.
  void SyncRecords() const {
    run_.chief->metrics->Sync();
    run_.chief->events->Sync();
    if (run_.chief->samples) run_.chief->samples->Sync();
  }

  RunPosition Position() const {
    return {.step = saving_step_,
            .skipped_steps = state_.skipped.ToText(),
            .recent_losses = state_.spikes.ToText(),
            .rollbacks = state_.rollbacks.ToText(),
            .data_position = state_.data.PositionAt(state_.rollbacks.BatchAt(saving_step_),
                                                    run_.config.train().batch_size())};
  }

  RunContext& run_;
  TrainingState& state_;
  bool is_shared_;  // the state, by the ranks
  SaveMode mode_;   // of saves that are due
  int64_t saving_step_ = 0;
  bool is_writing_ = false;  // in the background, as far as all ranks know
  StateCopy copy_;
  SharedSnapshot shared_;
  // The result of writing this rank's part of a shared checkpoint.
  std::future<std::string> part_;
  // On rank 0.
  int failed_in_a_row_ = 0;
  double waited_ = 0;         // seconds of training, for a save that is not recorded yet
  bool last_failed_ = false;  // the last save in the background, as the other ranks do not know yet
  std::string diverged_;      // why the state was not fit to be saved, likewise
  std::future<void> saving_;  // the whole checkpoint, or its end where all ranks write
};

}  // namespace

std::unique_ptr<Hook> MakeSaveHook(RunContext& run, TrainingState& state) {
  return std::make_unique<SaveHook>(run, state);
}

}  // namespace syntra
