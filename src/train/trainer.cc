// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <future>
#include <system_error>

#include "base/clock.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "checkpoint/retention.h"
#include "core/thread.h"
#include "run/common_error.h"
#include "run/failpoint.h"
#include "run/goodput.h"
#include "train/agreement.h"
#include "train/continuation.h"
#include "train/describe.h"
#include "train/hooks.h"
#include "train/initial.h"
#include "train/preflight.h"
#include "train/run_directory.h"
#include "train/threads.h"

namespace syntra {
namespace {

class Trainer {
 public:
  Trainer(RunContext& run, Workload& workload) : run_(run), workload_(workload) {}

  // Trains, and records how it ended.
  RunOutcome RunToItsEnd();

 private:
  ExitCode TrainWithRollbacks();
  void GoBack(const Divergence& divergence);
  void Settle();
  ExitCode TrainFromNewest();
  void Begin();
  std::optional<Checkpoint> FindNewest();
  void Continue(Checkpoint& newest);
  void SetRecordsAside() const;
  void StartOrContinue();
  bool IsDone();
  void CountStart();
  void MakeHooks();
  void LogStart() const;
  void OpenRecords();
  std::future<std::vector<Batch>> FetchAside(int64_t step);
  StepReport Step(std::future<std::vector<Batch>>* next);
  ExitCode TrainRemainingSteps();
  void RecordFailure() noexcept;
  void RecordEnd();
  void LogTime() const;

  int64_t steps() const { return run_.config.train().steps(); }

  RunContext& run_;
  Workload& workload_;
  // Where the run has just gone back to its newest checkpoint: its rollbacks, with this one.
  std::optional<Rollbacks> rolled_back_;
  std::optional<TrainingState> state_;
  RunOutcome outcome_;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

// The newest checkpoint of the run itself, the same on all ranks: rank 0 chooses it, sets damaged
// ones aside, and passes over what it cannot read.
std::optional<Checkpoint> Trainer::FindNewest() {
  std::optional<Checkpoint> found;
  if (run_.is_chief()) {
    found = FindNewestValid(run_.directory.checkpoints(), Recovery::kSetAside);
  }
  return OpenOnAllRanks(std::move(found), run_.ranks, kShareRunDirectory);
}

void Trainer::Continue(Checkpoint& newest) {
  TrainingState& state = *state_;
  const CheckpointSummary summary{newest.path(), newest.info()};
  CheckContinues(summary, run_.identity);
  const RunPosition position = LoadSnapshot(newest, state.replica, &run_.identity);
  state.skipped.Restore(position.skipped_steps);
  state.spikes.Restore(position.recent_losses);
  state.rollbacks.Restore(position.rollbacks);
  if (!position.data_position.empty()) state.data.RestorePosition(position.data_position);
  state.saved_step = state.step = position.step;
  if (rolled_back_) {
    state.rollbacks = *rolled_back_;
    // The checkpoint does not know of the last one, and is saved again at once. A run that is
    // killed before comes here again.
    state.saved_step.reset();
  }
  const std::string changes = OtherChanges(summary, run_.config);
  Log().info("continuing from {}{}{}", newest.path().string(),
             changes.empty() ? "" : "; changed: ", changes);
}

// Metrics of steps without any checkpoint: somebody has removed or moved the checkpoints, or their
// disk is not there now. What the run recorded would be cut off as steps that it trains again.
void Trainer::SetRecordsAside() const {
  const RunDirectory& run = run_.directory;
  if (!Exists(run.metrics())) return;
  try {
    const int64_t step = ReadRunHistory(run.metrics()).step;
    if (step == 0) return;
    Log().warn("{} has steps up to {}, but there is no checkpoint: the run starts from step 0",
               run.metrics().string(), WithThousands(step));
  } catch (const Error&) {
    return;  // the log that is opened next says so
  }
  for (const Path& records : {run.metrics(), run.samples()}) {
    if (!Exists(records)) continue;
    const Path aside = FirstFreeName(records.string() + ".old");
    RenameDurably(records, aside);
    Log().warn("what {} held is now in {}", records.filename().string(), aside.string());
  }
}

void Trainer::StartOrContinue() {
  std::optional<Checkpoint> found = FindNewest();
  if (found) {
    Continue(*found);
  } else {
    if (run_.is_chief()) SetRecordsAside();
    state_->replica.InitializeParameters(run_.config.train().seed());
    if (run_.initial) {
      LoadInitial(*run_.initial, run_.config.checkpoint(), state_->replica, &run_.identity);
    }
  }
  run_.initial.reset();
  if (Failpoint("wrong_start", state_->step, run_.ranks.rank(), run_.ranks.size())) {
    state_->runner.SpoilParameter();
  }
  // All ranks have read a checkpoint; rank 0 alone writes those of a state that is not shared.
  if (!run_.is_chief() && state_->replica.plan().shards() == 1) {
    state_->replica.ReleaseHostTensors();
  }
  state_->runner.SetOptimizerStepsBefore(run_.identity.optimizer_steps_before);
}

// A run that was stopped or killed in its last evaluation stands at its last step and is not done.
bool Trainer::IsDone() {
  const bool done = run_.is_chief() && run_.chief->status.IsDone(state_->step);
  return AnyRank(run_.ranks, done) && state_->step >= steps();
}

// All ranks refuse together to start once more from where earlier starts got nowhere. Going on
// after a rollback is no start.
void Trainer::CountStart() {
  if (rolled_back_) return;
  std::string refusal;
  if (run_.is_chief()) {
    run_.chief->lock.CheckHeld();
    try {
      run_.chief->status.Start(state_->step);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kDiverged) throw;
      refusal = error.what();
    }
  }
  BroadcastText(run_.ranks, &refusal);
  if (!refusal.empty()) throw CommonError(ExitCode::kDiverged, refusal);
}

// OpenMP's number of threads belongs to the calling thread. A new thread would use all cores and
// slow down the current step and the other ranks.
std::future<std::vector<Batch>> Trainer::FetchAside(int64_t step) {
  const auto fetch = [this, step, trace = run_.trace] {
    const TraceSpan span(trace, TraceLane::kData, "make batches", step + 1);
    return state_->runner.Fetch(state_->data, state_->rollbacks.BatchAt(step));
  };
  try {
    return std::async(std::launch::async, [fetch] {
      SetThreadCount(1);
      return fetch();
    });
  } catch (const std::system_error&) {  // no thread can be had, perhaps for a moment only
    WarnOnce(CurrentFailure().message + "; until one starts, each step makes its own batches");
    return std::async(std::launch::deferred, fetch);
  }
}

// One step, while the next one's batches are made.
StepReport Trainer::Step(std::future<std::vector<Batch>>* next) {
  StepReport report{.step = state_->step + 1};
  const auto start = Clock::now();
  const Watchdog::Phase phase(run_.watchdog, RunPhase::kStep, report.step);
  const TraceSpan span(run_.trace, TraceLane::kTraining, "step", report.step);
  run_.watchdog.Activity("waiting for data");
  const std::vector<Batch> batches = [&] {
    const TraceSpan data(run_.trace, TraceLane::kTraining, "data", report.step);
    return next->get();
  }();
  const double data_seconds = SecondsSince(start);
  report.last = report.step >= steps();
  if (!report.last) *next = FetchAside(report.step);
  run_.watchdog.Activity("training");
  if (Failpoint("fail_step", report.step, run_.ranks.rank(), run_.ranks.size())) {
    Fail(ExitCode::kResources, "a failure on purpose");
  }
  report.result = state_->runner.Run(batches, state_->step,
                                     {.stop = run_.requests->Stop(),
                                      .save = run_.requests->TakeSave(),
                                      .data_seconds = data_seconds},
                                     run_.trace.get());
  report.seconds = SecondsSince(start);
  report.stops = report.result.requests_to_stop > 0;
  ++state_->step;
  return report;
}

ExitCode Trainer::TrainRemainingSteps() {
  std::future<std::vector<Batch>> next;
  if (state_->step < steps()) next = FetchAside(state_->step);
  while (state_->step < steps()) {
    const StepReport report = Step(&next);
    const auto reads = [&](const auto& hook) { return hook->ReadsParametersAfter(report); };
    if (std::ranges::any_of(hooks_, reads)) state_->runner.FinishGathers();
    bool stops = report.stops;
    for (const auto& hook : hooks_) stops |= !hook->AfterStep(report);
    if (stops && !report.last) {
      state_->runner.FinishGathers();
      for (const auto& hook : hooks_) hook->Stop(report.step);
      return ExitCode::kRequeue;
    }
  }
  state_->runner.FinishGathers();
  for (const auto& hook : hooks_) {
    if (!hook->End(state_->step)) return ExitCode::kRequeue;
  }
  return workload_.Finish(run_, *state_) ? ExitCode::kDone : ExitCode::kRequeue;
}

void Trainer::MakeHooks() {
  hooks_.push_back(MakeCompareHook(run_, *state_));
  hooks_.push_back(MakeLogHook(run_, *state_));
  hooks_.push_back(MakeDivergenceHook(run_, *state_));
  hooks_.push_back(MakeSaveHook(run_, *state_));
  // After the save: what was trained is safe, however long an evaluation takes.
  hooks_.push_back(MakeEvaluateHook(run_, *state_, workload_));
  if (run_.config.train().profile().steps() > 0) hooks_.push_back(MakeProfileHook(run_));
}

// Everything from prepared data to the first step.
void Trainer::Begin() {
  const Watchdog::Phase phase(
      run_.watchdog, RunPhase::kLoad, 0,
      BytesBelow(run_.directory.checkpoints()) + InitialBytes(run_.config.checkpoint()));
  TrainingData data = workload_.Open(run_);
  CheckSameData(run_.ranks, run_.identity);
  state_.emplace(run_, std::move(data));
  StartOrContinue();
  outcome_.step = state_->step;
  outcome_.was_done = IsDone();
  if (outcome_.was_done) return;
  state_->peak_flops =
      MeasurePeak(run_.ranks, run_.backend, ActivationType(run_.config.train().precision()));
  const double flops = state_->runner.Flops(
      state_->runner.Fetch(state_->data, state_->rollbacks.BatchAt(state_->step)));
  run_.watchdog.ExpectStep(flops * run_.ranks.size() / state_->peak_flops);
  MakeHooks();
}

void Trainer::LogStart() const {
  const std::string data = workload_.DescribeData();
  if (!run_.is_chief()) return;
  run_.chief->lock.CheckHeld();
  const RunStart start{.step = state_->step,
                       .parameters = run_.plan->parameters().element_count(),
                       .data = data,
                       .rows_in_epoch = state_->data.RowsInEpoch(0),
                       .hosts = run_.hosts,
                       .cpus = run_.cpus,
                       .threads = ThreadCount(),
                       .backend = std::string(run_.backend.name()),
                       .is_faster_in_bf16 = run_.backend.MultipliesBFloat16()};
  for (const std::string& line : DescribeStart(run_.config, start)) Log().info("{}", line);
}

// Describes the run in its directory, and opens what all hooks write to.
void Trainer::OpenRecords() {
  if (!run_.is_chief()) return;
  Chief& chief = *run_.chief;
  chief.lock.CheckHeld();
  const Config& config = run_.config;
  DescribeRun(run_.directory, run_.identity.run_id, config, run_.ranks.size(),
              run_.identity.initial);
  const ResumePoint resumed{state_->step, EvaluatesAt(state_->step, config)};
  chief.records.emplace(run_.directory, run_.identity.run_id, config, resumed);
  chief.records->WriteStart(state_->step, SecondsSince(run_.started),
                            {{"ranks", run_.ranks.size()}, {"host", run_.hosts.front()}});
  chief.progress.emplace(ProgressOptions{.steps = config.train().steps(),
                                         .log_every = config.train().log_every(),
                                         .evaluate_every = config.evaluation().every(),
                                         .save_every = config.checkpoint().every(),
                                         .peak_flops = state_->peak_flops});
}

// From the newest checkpoint, or from the start where there is none.
ExitCode Trainer::TrainFromNewest() {
  // After a rollback everything is prepared, and the rollback must be saved before the run stops.
  if (!rolled_back_ && !workload_.Prepare(run_)) return ExitCode::kRequeue;
  Begin();
  if (outcome_.was_done) {
    Log().info("the run is done: {} of {} steps", state_->step, steps());
    return ExitCode::kDone;
  }
  CountStart();
  for (const auto& hook : hooks_) hook->Check(state_->step);
  LogStart();
  OpenRecords();
  for (const auto& hook : hooks_) {
    if (!hook->Start(state_->step)) return ExitCode::kRequeue;
  }
  return TrainRemainingSteps();
}

// Never throws, and writes nothing where another run may have begun.
void Trainer::RecordFailure() noexcept {
  try {
    if (!run_.is_chief() || !run_.chief->records) return;
    run_.chief->lock.CheckHeld();
    const Failure failure = CurrentFailure();
    run_.chief->records->WriteEvent(
        "failed", state_ ? state_->step : 0,
        {{"code", static_cast<int>(failure.code)}, {"error", failure.message}});
    run_.chief->records->WritePrometheus();
  } catch (...) {  // the failure itself is what people must see
  }
}

void Trainer::RecordEnd() {
  Chief& chief = *run_.chief;
  const bool done = outcome_.code == ExitCode::kDone;
  chief.lock.CheckHeld();
  chief.progress.reset();
  // A run that counts as done never writes its last lines again.
  chief.records->WriteEvent(done ? "done" : "stop", state_->step);
  chief.records->Sync();
  chief.records->WritePrometheus();
  const bool by_time = run_.requests->stopped_by_time();
  chief.status.Stop(state_->step, done      ? Ending::kDone
                                  : by_time ? Ending::kOutOfTime
                                            : Ending::kStopped);
  LogTime();
}

// Logs the goodput and the phases of a step, from what all processes of the run have recorded. A
// record that cannot be read gives only a warning, since what was trained is safe.
void Trainer::LogTime() const {
  const Watchdog::Phase phase(run_.watchdog, RunPhase::kLoad, state_->step,
                              BytesBelow(run_.directory.metrics()));
  try {
    const RunHistory history = ReadRunHistory(run_.directory.metrics());
    const auto goodput = GoodputOf(history, ReadEvents(run_.directory.events()));
    if (goodput) Log().info("goodput: {}", Describe(*goodput));
    const std::string phases = DescribePhases(history);
    if (!phases.empty()) Log().info("steps: {}", phases);
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
}

RunOutcome Trainer::RunToItsEnd() {
  try {
    outcome_.code = TrainWithRollbacks();
  } catch (...) {
    RecordFailure();
    for (const auto& hook : hooks_) hook->Leave(CurrentFailure());
    throw;
  }
  if (!state_ || outcome_.was_done) return outcome_;
  outcome_.step = state_->step;
  if (run_.is_chief()) RecordEnd();
  return outcome_;
}

// A run that diverges goes back as often as it may.
ExitCode Trainer::TrainWithRollbacks() {
  for (;;) {
    try {
      return TrainFromNewest();
    } catch (const Divergence& divergence) {
      Settle();
      GoBack(divergence);
    } catch (const CommonError&) {
      Settle();
      throw;
    }
  }
}

// All ranks leave the loop together, by an error.
void Trainer::Settle() {
  if (!state_) return;
  state_->runner.FinishGathers();
  for (const auto& hook : hooks_) hook->Settle();
}

// Makes an earlier checkpoint the newest one. Throws `divergence` where that is not allowed.
void Trainer::GoBack(const Divergence& divergence) {
  const int64_t most = run_.config.train().max_rollbacks();
  const int64_t done = state_->rollbacks.count();
  if (!workload_.may_roll_back() || most == 0) throw divergence;
  const auto give_up = [&](const std::string& why) {
    throw CommonError(ExitCode::kDiverged, fmt::format("{}. {}", divergence.what(), why));
  };
  if (done >= most) {
    give_up(fmt::format("The run has gone back {} (train.max_rollbacks is {})",
                        Counted(done, "time"), most));
  }
  const Path root = run_.directory.checkpoints();
  const Watchdog::Phase phase(run_.watchdog, RunPhase::kLoad, state_->step, BytesBelow(root));
  int64_t found = -1;
  if (run_.is_chief()) {
    run_.chief->lock.CheckHeld();
    try {
      found = StepToGoBackTo(root, divergence.first_bad_step(), ScheduleOf(run_.config));
    } catch (const Error& error) {
      if (error.code() != ExitCode::kCheckpoint) throw;
      Log().error("{}", error.what());
      found = state_->step;
    }
  }
  const int64_t to = LargestOfRanks(run_.ranks, found);
  if (to >= state_->step) give_up("There is no earlier checkpoint to go back to");
  if (run_.is_chief()) {
    RemoveCheckpointsAfter(root, to);
    run_.chief->records->WriteEvent("rollback", state_->step, {{"to", to}});
  }
  run_.started = Clock::now();
  rolled_back_ = state_->rollbacks;
  rolled_back_->Add(state_->step, to);
  Log().error(
      "{}. Going back from step {} to step {}, from which on other batches are taken "
      "(rollback {} of {})",
      divergence.what(), state_->step, to, done + 1, most);
  hooks_.clear();
  state_.reset();
}

}  // namespace

TrainingState::TrainingState(RunContext& run, TrainingData training_data)
    : data(std::move(training_data)),
      replica(run.plan, run.ranks.rank()),
      runner(replica, run.ranks),
      skipped(run.config.train().max_skipped_steps()) {}

RunOutcome Train(Workload& workload, const Config& config, const RankContext& rank,
                 std::optional<InitialModel> initial) {
  const Clock::time_point started = Clock::now();
  ChooseThreads(config.train());
  std::optional<Watchdog::Phase> phase(std::in_place, rank.watchdog, RunPhase::kPrepare, 0,
                                       InitialBytes(config.checkpoint()));
  PassedPreflight preflight =
      PreflightOfRanks(config, rank.ranks, rank.backend, std::move(initial));
  // The others wait in the constructor until rank 0 comes, or ends the job.
  try {
    RunContext run(config, rank, std::move(preflight));
    run.started = started;
    phase.reset();
    return Trainer(run, workload).RunToItsEnd();
  } catch (...) {
    // The caller prints it; people look for it in the log file, too.
    NoteInLogFile(CurrentFailure().message);
    throw;
  }
}

}  // namespace syntra
