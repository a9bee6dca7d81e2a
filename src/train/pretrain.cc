// SPDX-License-Identifier: Apache-2.0
#include "train/pretrain.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <optional>

#include "base/clock.h"
#include "base/failure.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "core/thread.h"
#include "train/agreement.h"
#include "train/continuation.h"
#include "train/describe.h"
#include "train/evaluate.h"
#include "train/event_file.h"
#include "train/failpoint.h"
#include "train/initial.h"
#include "train/metrics_log.h"
#include "train/preflight.h"
#include "train/progress.h"
#include "train/requests.h"
#include "train/run_directory.h"
#include "train/run_lock.h"
#include "train/run_status.h"
#include "train/snapshot.h"
#include "train/step.h"
#include "train/stragglers.h"
#include "train/watchdog.h"

namespace syntra {
namespace {

// Shares the cores that this process may use among the ranks of its host.
void ChooseThreads(const TrainConfig& config, const Communicator& ranks) {
  const int share = std::max(1, ProcessorCount() / ranks.ranks_on_host());
  SetThreadCount(config.threads() > 0 ? config.threads() : share);
}

// A run on rank 0 also owns the directory: lock, status, metrics, progress line.
struct Chief {
  explicit Chief(const RunDirectory& directory) : lock(directory.root), status(directory.root) {}
  RunLock lock;  // checked before anything is written
  RunStatus status;
  std::optional<MetricsLog> metrics;
  std::optional<EventFile> events;
  std::optional<Progress> progress;
  std::optional<Stragglers> stragglers;
  int saves_failed = 0;  // in a row

  // Numbers of a step or an evaluation, for programs and for TensorBoard.
  void Record(int64_t step, const NamedValues& values) {
    metrics->Write(step, values);
    events->Write(step, values);
  }
};

class Run {
 public:
  // `warnings` of the preflight go to the log, too.
  Run(const Config& config, Communicator& ranks, Backend& backend, Watchdog& watchdog,
      const std::vector<std::string>& warnings)
      : config_(config),
        ranks_(ranks),
        backend_(backend),
        watchdog_(watchdog),
        directory_{config.train().directory()},
        partition_(BatchPartition::Of(config.train(), ranks.size())) {
    TakeDirectory();
    for (const std::string& warning : warnings) Log().warn("{}", warning);
  }

  PretrainOutcome Train();

 private:
  bool is_chief() const { return chief_.has_value(); }
  void TakeDirectory();
  bool PrepareData();
  void OpenData();
  int64_t StartOrContinue();
  bool IsDone(int64_t step);
  bool Begin();
  void OpenLogs(int64_t step);
  bool EvaluateNow(int64_t step);
  // kLast: the run ends after it, so it must succeed.
  enum class Occasion { kOnTheWay, kLast };
  void SaveNow(int64_t step, Occasion occasion = Occasion::kOnTheWay);
  bool Due(int64_t step, int64_t every) const { return every > 0 && step % every == 0; }
  void Report(int64_t step, const StepResult& result, double seconds, double data_seconds);
  void WarnOfStraggler(const StepResult& result);
  void CompareReplicas(int64_t step, const char* reason);
  void MaybeAskToStop(const char* failpoint, int64_t step) const;
  std::future<std::vector<Batch>> FetchAside(int64_t step);
  ExitCode Loop(int64_t step);
  ExitCode TrainAndEvaluate();

  const Config& config_;
  Communicator& ranks_;
  Backend& backend_;
  Watchdog& watchdog_;
  RunDirectory directory_;
  BatchPartition partition_;
  std::optional<Chief> chief_;
  std::optional<Requests> requests_;
  RunIdentity identity_;
  std::optional<StoredParameters> initial_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<TrainingData> training_;
  std::optional<ValidationData> validation_;
  std::optional<Replica> replica_;
  std::optional<StepRunner> runner_;
  double peak_flops_ = NAN;  // of all ranks together; NaN: unknown
  SkippedSteps skipped_{config_.train().max_skipped_steps()};
  std::optional<double> first_log_perplexity_, last_log_perplexity_;
  int64_t step_ = 0;
  int64_t saved_step_ = -1;
};

void Run::TakeDirectory() {
  if (ranks_.rank() == 0) {
    // No checkpoint is safer than the directory that it is in.
    CreateDirectoriesDurably(directory_.root);
    chief_.emplace(directory_);
    CreateDirectories(directory_.logs());
    for (const Path& place : {directory_.root, directory_.logs()}) RemoveTemporaries(place);
    identity_.run_id = RunIdOf(directory_);
  }
  requests_.emplace(RequestOptions{.run_directory = directory_.root,
                                   .log_directory = directory_.logs(),
                                   .takes_files = is_chief(),
                                   .seconds = config_.train().stop_after_minutes() * 60});
  ranks_.Barrier();
  SetUpLogging(ranks_.rank(), directory_.logs());
  watchdog_.ReportTo(directory_.logs(), ranks_.rank(), ranks_.size());
  identity_.config = config_;
  identity_.world_size = ranks_.size();
  // Opened at once: before the data is prepared for nothing, and before the other run prunes it.
  const std::string& initial = config_.checkpoint().initial();
  if (!initial.empty() && ListCheckpoints(directory_.checkpoints()).empty()) {
    initial_.emplace(OpenInitial(initial));
  }
}

// False if a rank was asked to stop: finished shards stay, and the next start goes on with the
// rest.
bool Run::PrepareData() {
  const Watchdog::Phase phase(watchdog_, RunPhase::kPrepare);
  tokenizer_.emplace(config_.data().tokenizer(), config_.data().extra_ids());
  struct Stopped {};
  int64_t reports = 0;
  PrepareProgress previous;
  const auto prepare = [&](PrepareOptions options) {
    options.on_progress = [&](const PrepareProgress& progress) {
      // It is called again and again while a rank waits for another one's shard.
      if (progress != previous) watchdog_.Alive();
      previous = progress;
      if (is_chief()) chief_->lock.CheckHeld();
      MaybeAskToStop("stop_prepare", ++reports);
      if (requests_->StopOfAnyRank()) throw Stopped();
    };
    const PrepareResult result = PrepareCorpus(options, *tokenizer_);
    if (result.built > 0) {
      Log().info("prepared {} documents, {} tokens in {}", WithThousands(result.index.documents()),
                 WithThousands(result.index.tokens()), options.directory.string());
    }
  };
  double stopped = 0;
  try {
    std::vector<PrepareOptions> splits =
        Preparations(config_.data(), directory_.Prepared(config_.data()));
    splits.front().keeps_content = !ListCheckpoints(directory_.checkpoints()).empty();
    for (const PrepareOptions& split : splits) prepare(split);
  } catch (const Stopped&) {
    stopped = 1;
  }
  ranks_.AllReduceMax(std::span(&stopped, 1));
  return stopped == 0;
}

void Run::OpenData() {
  const Path prepared = directory_.Prepared(config_.data());
  training_.emplace(
      TrainingData::Open(config_.data(), *tokenizer_, prepared, config_.train().seed()));
  if (config_.data().validation_size() > 0) {
    watchdog_.Alive();
    validation_.emplace(ValidationData::Open(config_.data(), *tokenizer_, prepared));
  }
  identity_.tokenizer_identity = tokenizer_->identity();
  identity_.tokenizer_model = tokenizer_->content();
  identity_.data_digest = ToHex(training_->ContentDigest());
  identity_.shards_digest = ToHex(training_->index().DataDigest());
  if (validation_) identity_.validation_digest = ToHex(validation_->ContentDigest());
  CheckSameData(ranks_, identity_);
}

// The step that the run stands at; 0 for a new one.
int64_t Run::StartOrContinue() {
  replica_.emplace(config_.model(), &config_.optimizer(),
                   ActivationType(config_.train().precision()), backend_);
  replica_->SetLoss({config_.train().z_loss(), config_.train().label_smoothing()},
                    config_.train().recompute());
  runner_.emplace(config_, *replica_, ranks_);
  // The chief sets damaged checkpoints aside before the others look.
  std::optional<Checkpoint> found;
  if (is_chief()) found = FindNewestValid(directory_.checkpoints(), Recovery::kSetAside);
  ranks_.Barrier();
  if (!is_chief()) found = FindNewestValid(directory_.checkpoints(), Recovery::kReadOnly);
  const std::string newest = found ? std::to_string(found->info().step) : "none";
  CheckAgreement(ranks_, {{"newest checkpoint, step", newest}}, ExitCode::kCheckpoint,
                 "checkpoints", "The run directory must be on a file system that all ranks share");
  if (found) {
    const CheckpointSummary summary{found->path(), found->info()};
    CheckContinues(summary, identity_);
    LoadSnapshot(*found, *replica_, &skipped_, &identity_);
    saved_step_ = found->info().step;
    const std::string changes = OtherChanges(summary, config_);
    Log().info("continuing from {}{}{}", found->path().string(),
               changes.empty() ? "" : "; changed: ", changes);
    return found->info().step;
  }
  replica_->InitializeParameters(config_.train().seed());
  if (initial_) LoadInitial(*initial_, config_.checkpoint(), *replica_, &identity_);
  initial_.reset();
  return 0;
}

// A run that was stopped or killed in its last evaluation stands at its last step and is not done.
bool Run::IsDone(int64_t step) {
  double done = is_chief() && chief_->status.IsDone(step);
  ranks_.AllReduceMax(std::span(&done, 1));
  return done > 0 && step >= config_.train().steps();
}

void Run::OpenLogs(int64_t step) {
  const std::vector<std::string> hosts = ranks_.Gather(HostName());
  if (!is_chief()) return;
  chief_->stragglers.emplace(hosts);
  const RunStart start{.step = step,
                       .documents = training_->index().documents(),
                       .tokens = training_->index().tokens(),
                       .rows_in_epoch = training_->RowsInEpoch(0),
                       .hosts = hosts,
                       .threads = ThreadCount(),
                       .backend = std::string(backend_.name())};
  for (const std::string& line : DescribeStart(config_, start)) Log().info("{}", line);
  DescribeRun(directory_, identity_.run_id, config_, ranks_.size(), identity_.initial);
  chief_->status.Start(step);
  chief_->metrics.emplace(directory_.metrics(), step);
  chief_->events.emplace(directory_.events(), step + 1);
  chief_->progress.emplace(ProgressOptions{.steps = config_.train().steps(),
                                           .log_every = config_.train().log_every(),
                                           .evaluate_every = config_.evaluation().every(),
                                           .save_every = config_.checkpoint().every(),
                                           .peak_flops = peak_flops_});
}

// False if a rank was asked to stop. Nothing is logged then: a run that continues at this step
// makes the whole evaluation.
bool Run::EvaluateNow(int64_t step) {
  if (!validation_) return true;
  const auto start = Clock::now();
  std::optional<Watchdog::Phase> batch(std::in_place, watchdog_, RunPhase::kEvaluation, step);
  const auto result = Evaluate(*replica_, *validation_, ranks_, config_, [&] {
    batch.emplace(watchdog_, RunPhase::kEvaluation, step);
    MaybeAskToStop("stop_evaluation", step);
    double stop = requests_->Stop();
    ranks_.AllReduceMax(std::span(&stop, 1));
    return stop > 0;
  });
  batch.reset();
  if (!result) return false;
  if (!std::isfinite(result->log_perplexity)) {
    Fail(
        ExitCode::kDiverged,
        "the validation log-perplexity after step {} is not finite; the last checkpoint is of step "
        "{}. Lower optimizer.schedule.rate or set optimizer.clip_norm",
        step, saved_step_);
  }
  last_log_perplexity_ = result->log_perplexity;
  if (!first_log_perplexity_) first_log_perplexity_ = last_log_perplexity_;
  if (is_chief()) {
    chief_->lock.CheckHeld();
    const double seconds = SecondsSince(start);
    chief_->progress->Evaluated(seconds);
    chief_->Record(step, {{"validation_log_perplexity", result->log_perplexity},
                          {"validation_tokens", static_cast<double>(result->tokens)}});
    Log().info(
        "step {}: validation log-perplexity {:.4f} over {} tokens (labels {:016x}, {:.1f} s)",
        WithThousands(step), result->log_perplexity, WithThousands(result->tokens),
        result->label_checksum, seconds);
  }
  return true;
}

// Only the chief writes; a failed save is tried again at the next occasion, a few times.
void Run::SaveNow(int64_t step, Occasion occasion) {
  if (saved_step_ == step) return;
  const Watchdog::Phase phase(watchdog_, RunPhase::kSave, step, replica_->bytes());
  // A communicator that lost a rank may leave wrong sums in a device and shows it in its next call:
  // that call comes when all sums are done, and before they are kept.
  backend_.device().Wait();
  ranks_.Barrier();
  double failed = 0;
  if (is_chief()) {
    const auto start = Clock::now();
    chief_->lock.CheckHeld();
    try {
      // The run that continues from here keeps the lines up to here.
      chief_->metrics->Sync();
      SaveSnapshot(directory_.checkpoints(), identity_, step, skipped_, *replica_,
                   config_.checkpoint());
      chief_->saves_failed = 0;
      chief_->status.Progress(step);
      chief_->progress->Saved(SecondsSince(start));
    } catch (const Error& error) {
      // Step 0 finds a full disk or missing rights before any work is lost.
      ++chief_->saves_failed;
      if (step == 0 || occasion == Occasion::kLast || error.code() == ExitCode::kDiverged ||
          chief_->saves_failed >= config_.checkpoint().max_failed_saves()) {
        throw;
      }
      Log().error("checkpoint at step {} failed ({} of {} in a row): {}", step,
                  chief_->saves_failed, config_.checkpoint().max_failed_saves(), error.what());
      failed = 1;
    }
  }
  ranks_.AllReduceMax(std::span(&failed, 1));
  if (failed == 0) saved_step_ = step;
}

void Run::Report(int64_t step, const StepResult& result, double seconds, double data_seconds) {
  if (!is_chief()) return;
  chief_->lock.CheckHeld();
  const double tokens = static_cast<double>(partition_.batch_size) *
                        static_cast<double>(training_->input_length() + training_->target_length());
  const double flops = runner_->Flops(*training_);
  chief_->progress->Step({.step = step,
                          .loss = result.sums.PerToken(),
                          .grad_norm = result.gradient_norm,
                          .learning_rate = result.learning_rate,
                          .tokens = tokens,
                          .flops = flops,
                          .seconds = seconds,
                          .data_seconds = data_seconds,
                          .sync_seconds = result.sync_seconds});
  chief_->Record(step, {{"loss", result.sums.PerToken()},
                        {"grad_norm", result.gradient_norm},
                        {"learning_rate", result.learning_rate},
                        {"tokens_per_second", tokens / seconds},
                        {"seconds", seconds},
                        {"mfu", flops / (seconds * peak_flops_)},
                        {"z_loss", result.sums.z_loss / result.sums.tokens},
                        {"target_tokens", result.sums.tokens},
                        {"skipped", result.skipped ? 1.0 : 0.0}});
}

void Run::WarnOfStraggler(const StepResult& result) {
  if (!is_chief()) return;
  if (const auto warning = chief_->stragglers->Add(result.rank_seconds)) {
    Log().warn("{}", *warning);
  }
}

void Run::CompareReplicas(int64_t step, const char* reason) {
  const Watchdog::Phase phase(watchdog_, RunPhase::kCompare, step);
  if (AgreeOnDigest(ranks_, replica_->ParameterDigest())) return;
  Fail(ExitCode::kDiverged, "the replicas of the ranks differ after step {}; {}", step, reason);
}

void Run::MaybeAskToStop(const char* failpoint, int64_t step) const {
  if (Failpoint(failpoint, step, ranks_.rank(), ranks_.size())) raise(SIGUSR1);
}

// OpenMP counts threads by the thread that asks: a new one would take every core of the machine,
// from the step that is being trained and from the other ranks.
std::future<std::vector<Batch>> Run::FetchAside(int64_t step) {
  return std::async(std::launch::async, [this, step] {
    SetThreadCount(1);
    return runner_->Fetch(*training_, step);
  });
}

ExitCode Run::Loop(int64_t step) {
  const int64_t steps = config_.train().steps();
  if (step >= steps) return ExitCode::kDone;
  auto next = FetchAside(step);
  while (step < steps) {
    const auto start = Clock::now();
    std::optional<Watchdog::Phase> phase(std::in_place, watchdog_, RunPhase::kStep, step + 1);
    watchdog_.Activity("waiting for data");
    const std::vector<Batch> batches = next.get();
    const double data_seconds = SecondsSince(start);
    if (step + 1 < steps) next = FetchAside(step + 1);
    watchdog_.Activity("training");
    const StepResult result = runner_->Run(
        batches, step,
        {.stop = requests_->Stop(), .save = requests_->TakeSave(), .data_seconds = data_seconds});
    phase.reset();
    step_ = ++step;
    Report(step, result, SecondsSince(start), data_seconds);
    WarnOfStraggler(result);
    skipped_.Count(step, result.skipped);
    if (ranks_.size() > 1 && Due(step, config_.train().compare_replicas_every())) {
      CompareReplicas(step, "a machine computes wrongly");
    }
    bool stop = result.requests_to_stop > 0;
    if (!stop && Due(step, config_.evaluation().every()) && step < steps) stop = !EvaluateNow(step);
    if (stop && step < steps) {
      SaveNow(step, Occasion::kLast);
      return ExitCode::kRequeue;
    }
    if (step < steps && (result.requests_to_save > 0 || Due(step, config_.checkpoint().every()))) {
      SaveNow(step);
    }
  }
  return ExitCode::kDone;
}

ExitCode Run::TrainAndEvaluate() {
  const bool trains = step_ < config_.train().steps();
  // A run that continues evaluates here only if one that was never interrupted would have done so.
  const bool evaluates = step_ == 0 || Due(step_, config_.evaluation().every());
  if (trains && evaluates && !EvaluateNow(step_)) return ExitCode::kRequeue;
  if (const ExitCode code = Loop(step_); code != ExitCode::kDone) return code;
  SaveNow(step_, Occasion::kLast);
  return EvaluateNow(step_) ? ExitCode::kDone : ExitCode::kRequeue;
}

// Everything from prepared data to the first step. False if there is none: the run is done.
bool Run::Begin() {
  const Watchdog::Phase phase(
      watchdog_, RunPhase::kLoad, 0,
      BytesBelow(directory_.Prepared(config_.data())) + BytesBelow(directory_.checkpoints()));
  OpenData();
  step_ = StartOrContinue();
  if (IsDone(step_)) return false;
  peak_flops_ = MeasurePeak(ranks_, backend_, ActivationType(config_.train().precision()));
  watchdog_.ExpectStep(runner_->Flops(*training_) / peak_flops_);
  if (ranks_.size() > 1) {
    CompareReplicas(step_, "its checkpoint, or checkpoint.initial, is not the same on all ranks");
  }
  OpenLogs(step_);
  ranks_.Barrier();
  return true;
}

PretrainOutcome Run::Train() {
  PretrainOutcome outcome;
  if (!PrepareData()) {
    outcome.code = ExitCode::kRequeue;
    return outcome;
  }
  outcome.was_done = !Begin();
  outcome.step = step_;
  if (outcome.was_done) {
    Log().info("the run is done: {} of {} steps", step_, config_.train().steps());
    return outcome;
  }
  SaveNow(step_);
  outcome.code = TrainAndEvaluate();
  outcome.step = step_;
  outcome.first_log_perplexity = first_log_perplexity_;
  outcome.last_log_perplexity = last_log_perplexity_;
  if (is_chief()) {
    chief_->lock.CheckHeld();
    chief_->progress.reset();
    // A run that counts as done never writes its last lines again.
    chief_->metrics->Sync();
    chief_->status.Stop(step_, outcome.code == ExitCode::kDone);
  }
  return outcome;
}

}  // namespace

PretrainOutcome Pretrain(const Config& config, Communicator& ranks, Backend& backend,
                         Watchdog& watchdog) {
  ChooseThreads(config.train(), ranks);
  std::optional<Watchdog::Phase> phase(std::in_place, watchdog, RunPhase::kPrepare);
  const std::vector<std::string> warnings = PreflightOfRanks(config, ranks, backend);
  // The others wait in the constructor until rank 0 comes, or ends the job.
  try {
    Run run(config, ranks, backend, watchdog, warnings);
    phase.reset();
    return run.Train();
  } catch (...) {
    // The caller prints it; people look for it in the log file, too.
    NoteInLogFile(CurrentFailure().message);
    throw;
  }
}

}  // namespace syntra
