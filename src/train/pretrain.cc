#include "train/pretrain.h"

#include <sched.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <future>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/recover.h"
#include "core/thread.h"
#include "train/evaluate.h"
#include "train/event_file.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/run_lock.h"
#include "train/run_status.h"
#include "train/signals.h"
#include "train/snapshot.h"
#include "train/step.h"
#include "train/watchdog.h"

namespace syntra {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Shares the cores that this process may use among the ranks of its host.
void ChooseThreads(const TrainConfig& config, const Communicator& ranks) {
  cpu_set_t allowed;
  int cores = ThreadCount();
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  const int share = std::max(1, cores / ranks.ranks_on_host());
  SetThreadCount(config.threads() > 0 ? config.threads() : share);
}

// The caller prints an error that ends the run; people look for it in the log file, too.
void NoteInLogFile(const std::string& message) {
  for (const spdlog::sink_ptr& sink : Log().sinks()) {
    if (!dynamic_cast<spdlog::sinks::basic_file_sink_mt*>(sink.get())) continue;
    sink->log({"syntra", spdlog::level::err, message});
    sink->flush();
  }
}

// A run on rank 0 also owns the directory: lock, status, metrics, progress line.
struct Chief {
  explicit Chief(const RunDirectory& directory) : lock(directory.root), status(directory.root) {}
  RunLock lock;
  RunStatus status;
  std::optional<MetricsLog> metrics;
  std::optional<EventFile> events;
  std::optional<Progress> progress;
  int saves_failed = 0;  // in a row
};

class Run {
 public:
  Run(const Config& config, Communicator& ranks)
      : config_(config),
        ranks_(ranks),
        directory_{config.train().directory()},
        partition_(BatchPartition::Of(config.train(), ranks.size())) {
    TakeDirectory();
  }

  PretrainOutcome Train();

 private:
  bool is_chief() const { return chief_.has_value(); }
  void TakeDirectory();
  void OpenData();
  int64_t StartOrContinue();
  void OpenLogs(int64_t step);
  void EvaluateNow(int64_t step);
  // kLast: the run ends after it, so it must succeed.
  enum class Occasion { kOnTheWay, kLast };
  void SaveNow(int64_t step, Occasion occasion = Occasion::kOnTheWay);
  bool Due(int64_t step, int64_t every) const { return every > 0 && step % every == 0; }
  void Report(int64_t step, const StepResult& result, double seconds, double data_seconds);
  void CountSkipped(int64_t step, bool skipped);
  void CompareReplicas(int64_t step);
  std::future<std::vector<Batch>> FetchAside(int64_t step);
  ExitCode Loop(int64_t step);

  const Config& config_;
  Communicator& ranks_;
  RunDirectory directory_;
  BatchPartition partition_;
  std::optional<Chief> chief_;
  std::optional<Watchdog> watchdog_;
  RunIdentity identity_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<TrainingData> training_;
  std::optional<ValidationData> validation_;
  std::optional<Replica> replica_;
  std::optional<StepRunner> runner_;
  std::deque<int64_t> skipped_;  // recent steps that were skipped
  Clock::time_point start_ = Clock::now();
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
    identity_.run_id = RunIdOf(directory_);
  }
  ranks_.Barrier();
  SetUpLogging(ranks_.rank(), directory_.logs());
  watchdog_.emplace(WatchdogOptions{
      .rank = ranks_.rank(), .ranks = ranks_.size(), .directory = directory_.logs()});
  identity_.config = config_;
  identity_.world_size = ranks_.size();
}

void Run::OpenData() {
  const Watchdog::Phase phase(*watchdog_, RunPhase::kPrepare);
  const Path prepared = directory_.Prepared(config_.data());
  tokenizer_.emplace(config_.data().tokenizer(), config_.data().extra_ids());
  if (tokenizer_->vocabulary_size() > config_.model().vocabulary_size()) {
    Fail(ExitCode::kConfig,
         "model.vocabulary_size {} is smaller than the tokenizer's {} pieces and sentinels",
         config_.model().vocabulary_size(), tokenizer_->vocabulary_size());
  }
  const auto prepare = [&](PrepareOptions options) {
    options.on_progress = [&](const PrepareProgress& done) {
      watchdog_->Alive();
      if (is_chief()) {
        Log().info("preparing: {} of {} shards, {} tokens", done.shards_done, done.shards_total,
                   WithThousands(done.tokens));
      }
    };
    PrepareCorpus(options, *tokenizer_);
  };
  prepare(TrainingPreparation(config_.data(), prepared));
  if (config_.data().validation_size() > 0) {
    prepare(ValidationPreparation(config_.data(), prepared));
  }
  ranks_.Barrier();
  training_.emplace(
      TrainingData::Open(config_.data(), *tokenizer_, prepared, config_.train().seed()));
  if (config_.data().validation_size() > 0) {
    validation_.emplace(ValidationData::Open(config_.data(), *tokenizer_, prepared));
  }
  identity_.tokenizer_digest = ToHex(tokenizer_->digest());
  identity_.data_digest = ToHex(training_->index().DataDigest());
}

// The step that the run stands at; 0 for a new one.
int64_t Run::StartOrContinue() {
  const Watchdog::Phase phase(*watchdog_, RunPhase::kSave);
  replica_.emplace(config_.model(), &config_.optimizer(),
                   ActivationType(config_.train().precision()));
  replica_->SetLoss({config_.train().z_loss(), config_.train().label_smoothing()},
                    config_.train().recompute());
  runner_.emplace(config_, *replica_, ranks_);
  // The chief sets damaged checkpoints aside before the others look.
  std::optional<Checkpoint> found;
  if (is_chief()) found = FindNewestValid(directory_.checkpoints(), Recovery::kSetAside);
  ranks_.Barrier();
  if (!is_chief()) found = FindNewestValid(directory_.checkpoints(), Recovery::kReadOnly);
  if (found) {
    CheckContinues(*found, identity_);
    LoadSnapshot(*found, *replica_);
    saved_step_ = found->info().step;
    Log().info("continuing from {}", found->path().string());
    return found->info().step;
  }
  replica_->InitializeParameters(config_.train().seed());
  if (!config_.checkpoint().initial().empty()) {
    Checkpoint initial = OpenNewest(config_.checkpoint().initial());
    LoadParameters(initial, *replica_);
    Log().info("starting from the parameters of {}", initial.path().string());
  }
  return 0;
}

void Run::OpenLogs(int64_t step) {
  if (!is_chief()) return;
  DescribeRun(directory_, identity_.run_id, config_, ranks_.size());
  chief_->status.Start(step);
  chief_->metrics.emplace(directory_.metrics(), step);
  chief_->events.emplace(directory_.events(), step + 1);
  chief_->progress.emplace(ProgressOptions{.steps = config_.train().steps(),
                                           .log_every = config_.train().log_every(),
                                           .evaluate_every = config_.evaluation().every(),
                                           .save_every = config_.checkpoint().every()});
}

void Run::EvaluateNow(int64_t step) {
  if (!validation_) return;
  const Watchdog::Phase phase(*watchdog_, RunPhase::kEvaluation, step);
  const auto start = Clock::now();
  const EvaluationResult result = Evaluate(*replica_, *validation_, ranks_, config_);
  last_log_perplexity_ = result.log_perplexity;
  if (!first_log_perplexity_) first_log_perplexity_ = last_log_perplexity_;
  if (is_chief()) {
    const double seconds = SecondsSince(start);
    chief_->progress->Evaluated(seconds);
    chief_->progress->Clear();
    const NamedValues values{{"validation_log_perplexity", result.log_perplexity},
                             {"validation_tokens", static_cast<double>(result.tokens)}};
    chief_->metrics->Write(step, values);
    chief_->events->Write(step, values);
    Log().info(
        "step {}: validation log-perplexity {:.4f} over {} tokens (labels {:016x}, {:.1f} s)",
        WithThousands(step), result.log_perplexity, WithThousands(result.tokens),
        result.label_checksum, seconds);
  }
}

// Only the chief writes; a failed save is tried again at the next occasion, a few times.
void Run::SaveNow(int64_t step, Occasion occasion) {
  if (saved_step_ == step) return;
  const Watchdog::Phase phase(*watchdog_, RunPhase::kSave, step);
  double failed = 0;
  if (is_chief()) {
    const auto start = Clock::now();
    try {
      // The run that continues from here keeps the lines up to here.
      chief_->metrics->Sync();
      SaveSnapshot(directory_.checkpoints(), identity_, step, *replica_, config_.checkpoint());
      chief_->saves_failed = 0;
      chief_->status.Progress(step);
      chief_->progress->Saved(SecondsSince(start));
    } catch (const Error& error) {
      // Step 0 finds a full disk or missing rights before any work is lost.
      ++chief_->saves_failed;
      if (step == 0 || occasion == Occasion::kLast ||
          chief_->saves_failed >= config_.checkpoint().max_failed_saves()) {
        throw;
      }
      chief_->progress->Clear();
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
  const double tokens = static_cast<double>(partition_.batch_size) *
                        static_cast<double>(training_->input_length() + training_->target_length());
  const double flops = 3 *
                       replica_
                           ->Training({partition_.micro_batch_rows, training_->input_length(),
                                       training_->target_length()})
                           .program()
                           .forward_flops() *
                       static_cast<double>(partition_.batch_size / partition_.micro_batch_rows);
  chief_->progress->Step({.step = step,
                          .loss = result.sums.PerToken(),
                          .grad_norm = result.gradient_norm,
                          .learning_rate = result.learning_rate,
                          .tokens = tokens,
                          .flops = flops,
                          .seconds = seconds,
                          .data_seconds = data_seconds,
                          .sync_seconds = result.sync_seconds});
  const StepMetrics metrics{.step = step,
                            .loss = result.sums.PerToken(),
                            .grad_norm = result.gradient_norm,
                            .learning_rate = result.learning_rate,
                            .tokens_per_second = tokens / seconds,
                            .seconds = seconds,
                            .extras = {{"z_loss", result.sums.z_loss / result.sums.tokens},
                                       {"target_tokens", result.sums.tokens},
                                       {"skipped", result.skipped ? 1.0 : 0.0}}};
  chief_->metrics->Write(metrics);
  chief_->events->Write(step, {{"loss", metrics.loss},
                               {"grad_norm", metrics.grad_norm},
                               {"learning_rate", metrics.learning_rate},
                               {"tokens_per_second", metrics.tokens_per_second}});
}

void Run::CountSkipped(int64_t step, bool skipped) {
  constexpr int64_t kWindow = 100;
  while (!skipped_.empty() && skipped_.front() <= step - kWindow) skipped_.pop_front();
  if (!skipped) return;
  skipped_.push_back(step);
  const int limit = config_.train().max_skipped_steps();
  if (static_cast<int>(skipped_.size()) > limit) {
    Fail(ExitCode::kDiverged,
         "{} of the last {} steps had a loss or gradient that is not finite "
         "(train.max_skipped_steps "
         "is {}); lower optimizer.schedule.rate or set optimizer.clip_norm",
         skipped_.size(), kWindow, limit);
  }
}

void Run::CompareReplicas(int64_t step) {
  if (ranks_.size() == 1 || !Due(step, config_.train().compare_replicas_every())) return;
  // The digest's halves as exact doubles, and negated: equal on all ranks iff max = -max(-x).
  const uint64_t digest = replica_->ParameterDigest();
  const double low = static_cast<double>(digest & 0xffffffff);
  const double high = static_cast<double>(digest >> 32);
  std::array<double, 4> extremes{low, high, -low, -high};
  ranks_.AllReduceMax(extremes);
  if (extremes[0] != -extremes[2] || extremes[1] != -extremes[3]) {
    Fail(ExitCode::kDiverged,
         "the replicas of the ranks differ after step {}; a machine computes wrongly", step);
  }
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
  const double limit = config_.train().stop_after_minutes() * 60;
  auto next = FetchAside(step);
  while (step < steps) {
    const auto start = Clock::now();
    std::optional<Watchdog::Phase> phase(std::in_place, *watchdog_, RunPhase::kStep, step);
    watchdog_->Activity("waiting for data");
    const std::vector<Batch> batches = next.get();
    const double data_seconds = SecondsSince(start);
    if (step + 1 < steps) next = FetchAside(step + 1);
    watchdog_->Activity("training");
    StopRequest request = PollSignals();
    if (is_chief()) request = std::max(request, PollRequestFiles(directory_.root));
    const bool out_of_time = limit > 0 && SecondsSince(start_) > limit;
    const StepResult result =
        runner_->Run(batches, step, request == StopRequest::kSaveAndStop || out_of_time,
                     request == StopRequest::kSave);
    phase.reset();
    step_ = ++step;
    Report(step, result, SecondsSince(start), data_seconds);
    CountSkipped(step, result.skipped);
    CompareReplicas(step);
    const bool stop = result.requests_to_stop > 0;
    if (!stop && Due(step, config_.evaluation().every()) && step < steps) EvaluateNow(step);
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

PretrainOutcome Run::Train() {
  OpenData();
  step_ = StartOrContinue();
  const int64_t steps = config_.train().steps();
  PretrainOutcome outcome;
  outcome.step = step_;
  outcome.was_done = step_ >= steps;
  if (outcome.was_done) {
    Log().info("the run is done: {} of {} steps", step_, steps);
    if (is_chief()) chief_->status.Stop(step_, true);
    return outcome;
  }
  OpenLogs(step_);
  SaveNow(step_);
  // A run that continues evaluates here only if one that was never interrupted would have done so.
  if (step_ == 0 || Due(step_, config_.evaluation().every())) EvaluateNow(step_);
  outcome.code = Loop(step_);
  if (outcome.code == ExitCode::kDone) {
    EvaluateNow(step_);
    SaveNow(step_, Occasion::kLast);
  }
  outcome.step = step_;
  outcome.first_log_perplexity = first_log_perplexity_;
  outcome.last_log_perplexity = last_log_perplexity_;
  if (is_chief()) {
    chief_->progress->Finish();
    chief_->status.Stop(step_, outcome.code == ExitCode::kDone);
  }
  return outcome;
}

}  // namespace

PretrainOutcome Pretrain(const Config& config, Communicator& ranks) {
  ChooseThreads(config.train(), ranks);
  try {
    return Run(config, ranks).Train();
  } catch (const Error& error) {
    NoteInLogFile(error.what());
    throw;
  }
}

}  // namespace syntra
