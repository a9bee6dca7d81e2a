// SPDX-License-Identifier: Apache-2.0
#include "train/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "data/corpus_index.h"
#include "data/example.h"
#include "data/first_records.h"
#include "data/prepared_state.h"
#include "data/training_data.h"
#include "kernels/cpu/processor.h"
#include "plan/fits.h"
#include "run/run_lock.h"
#include "tasks/task.h"
#include "train/continuation.h"
#include "train/disk_needs.h"
#include "train/initial.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/snapshot.h"
#include "train/task_data.h"
#include "train/task_labels.h"

namespace syntra {
namespace {

// About: a line of metrics.jsonl and its TensorBoard event.
constexpr double kMetricsBytesPerStep = 700;
// More rows of the embedding than this, relative to those that are needed, are taken for a mistake.
constexpr double kMostRowsOverTokens = 1.5;

using State = Finding::State;

struct CheckResult {
  std::string text;
  State state = State::kGood;

  // A check that is all right returns its text.
  CheckResult(const char* text) : text(text) {}  // NOLINT
  CheckResult(std::string text, State state = State::kGood) : text(std::move(text)), state(state) {}
};

// Throws Error(kResources) unless `path` is a directory that can be written, or can be made.
void CheckWritable(const Path& path, const char* field) {
  const Path place = ExistingAncestor(path);
  if (!IsDirectory(place)) {
    Fail(ExitCode::kResources, "{} cannot be a directory: {} is a file; set another {}",
         path.string(), place.string(), field);
  }
  if (access(place.c_str(), W_OK | X_OK) != 0) {
    Fail(ExitCode::kResources, "cannot write to {}: {}; set another {}, or change its rights",
         place.string(), SystemErrorText(errno), field);
  }
}

std::shared_ptr<const TrainingPlan> PlanFor(const Config& config, const RankPlaces& places) {
  return TrainingPlan::Make(config, {.ranks = places.ranks, .backend = places.backend});
}

class Checks {
 public:
  Checks(const Config& config, const RankPlaces& places, std::optional<InitialModel> initial)
      : config_(config),
        places_(places),
        directory_{config.train().directory()},
        learns_tasks_(HasTasks(config.data())),
        splits_(SplitsOf(config, directory_)),
        initial_(std::move(initial)) {}

  PreflightReport Run() {
    Check("model", {}, [&] { return CheckModel(); });
    Check("precision", {}, [&] { return CheckPrecision(); });
    Check("schedule", {}, [&] { return CheckSchedule(); });
    if (learns_tasks_) {
      Check("task files", {}, [&] { return CheckTasks(); });
      Check("test files", {"task files"}, [&] { return CheckTestFiles(); });
    }
    Check("initial", {}, [&] { return CheckInitial(); });
    Check("tokenizer", {"initial"}, [&] { return CheckTokenizer(); });
    if (learns_tasks_) {
      Check("labels", {"task files", "tokenizer"}, [&] { return CheckLabels(); });
    }
    if (initial_) {
      Check("start", {"model", "tokenizer"}, [&] { return CheckMatches(); });
    }
    if (!learns_tasks_) CheckCorpora();
    Check("run directory", {}, [&] { return CheckDirectory(); });
    Check("lock", {"run directory"}, [&] {
      RunLock::RequireFree(directory_.root);
      return "no other run is in the directory";
    });
    if (!learns_tasks_) {
      Check("token shards", {"tokenizer", "training data", "validation data"},
            [&] { return CheckShards(); });
    }
    Check("checkpoints", {"tokenizer", "run directory"}, [&] { return CheckCheckpoints(); });
    Check("disk", {"model", "run directory", "token shards"}, [&] { return CheckSpace(); });
    Check("memory", {"model"}, [&] { return CheckFits(*plan_, places_.ranks_on_host); });
    return {std::move(findings_), std::move(plan_), std::move(initial_)};
  }

 private:
  // None of a run that learns tasks.
  static std::vector<PrepareOptions> SplitsOf(const Config& config, const RunDirectory& directory) {
    if (HasTasks(config.data())) return {};
    return Preparations(config.data(), directory.Prepared(config.data()));
  }

  template <typename Subject>
  void Check(const char* name, const std::vector<std::string>& needs, const Subject& subject) {
    for (const Finding& finding : findings_) {
      const bool needed = std::ranges::find(needs, finding.subject) != needs.end();
      if (needed && (finding.state == State::kFailed || finding.state == State::kSkipped)) {
        findings_.push_back(
            {name, State::kSkipped, fmt::format("needs the check of \"{}\"", finding.subject)});
        return;
      }
    }
    try {
      const CheckResult result = subject();
      findings_.push_back({name, result.state, result.text});
    } catch (const Error& error) {
      AddFailure(name, error.what(), error.code());
    } catch (const std::filesystem::filesystem_error& error) {
      AddFailure(
          name,
          fmt::format("cannot look at {}: {}", error.path1().string(), error.code().message()),
          ExitCode::kResources);
    }
  }

  // A mistake that several checks meet is told once.
  void AddFailure(const char* name, const std::string& text, ExitCode code) {
    for (const Finding& other : findings_) {
      if (other.state != State::kFailed || other.detail != text) continue;
      findings_.push_back({name, State::kSkipped, fmt::format("fails as \"{}\"", other.subject)});
      return;
    }
    findings_.push_back({name, State::kFailed, text, code});
  }

  CheckResult CheckSchedule() const {
    const ScheduleConfig& schedule = config_.optimizer().schedule();
    const std::string text = ScheduleConfig::Kind_Name(schedule.kind());
    const int64_t steps = config_.train().steps(), warmup = schedule.warmup_steps();
    // Schedules that fall to a final rate are refused in that case, and RSQRT does not rise.
    const bool may_only_rise = schedule.kind() == ScheduleConfig::CONSTANT ||
                               schedule.kind() == ScheduleConfig::INVERSE_SQRT;
    if (!may_only_rise || warmup < steps) return text;
    return {fmt::format("{} rises to its rate {} over warmup_steps {}, but the run ends after {} "
                        "steps; set optimizer.schedule.warmup_steps to fewer",
                        text, schedule.rate(), warmup, steps),
            State::kWarning};
  }

  CheckResult CheckPrecision() const {
    const TrainConfig& train = config_.train();
    const std::string text = TrainConfig::Precision_Name(train.precision());
    const bool is_slow = train.precision() == TrainConfig::BF16 &&
                         places_.backend->device().is_host() && BFloat16IsEmulated();
    if (!is_slow) return text;
    return {text + " takes longer than FP32 on this processor, which has no instructions for it",
            State::kWarning};
  }

  std::string CheckModel() {
    auto plan = PlanFor(config_, places_);
    plan->memory();  // a size may be too large
    plan_ = std::move(plan);
    return fmt::format("{} parameters", WithThousands(plan_->parameters().element_count()));
  }

  CheckResult CheckTokenizer() {
    tokenizer_.emplace(OpenTokenizer(config_, initial_));
    CheckFitsTheStart(*tokenizer_);
    const int32_t rows = config_.model().vocabulary_size();
    CheckCanTrain(*tokenizer_, rows);
    const std::string text =
        fmt::format("{}: {} pieces and {} sentinels", tokenizer_->path().string(),
                    tokenizer_->piece_count(), tokenizer_->extra_ids());
    const int32_t enough = VocabularySizeFor(*tokenizer_);
    // A model that was trained keeps its rows.
    const bool is_new =
        config_.checkpoint().initial().empty() && ListCheckpoints(directory_.checkpoints()).empty();
    if (!is_new || rows <= kMostRowsOverTokens * enough) return text;
    return {fmt::format("{}; model.vocabulary_size is {}, but there are {} tokens: rows without a "
                        "token take memory and time, and {} would do",
                        text, rows, tokenizer_->vocabulary_size(), enough),
            State::kWarning};
  }

  // A model that was trained keeps its vocabulary: where it has a tokenizer, another is the
  // mistake.
  void CheckFitsTheStart(const Tokenizer& tokenizer) const {
    if (!initial_ || tokenizer.vocabulary_size() <= config_.model().vocabulary_size()) return;
    const std::string& identity = initial_->tokenizer_identity;
    if (identity.empty() || identity == tokenizer.identity()) return;
    Fail(ExitCode::kConfig,
         "data.tokenizer {} is another than that of checkpoint.initial {}, and has more tokens "
         "({}) than its model ({}); leave data.tokenizer out to take that of the checkpoint",
         tokenizer.path().string(), initial_->source, tokenizer.vocabulary_size(),
         config_.model().vocabulary_size());
  }

  std::string CheckTasks() {
    tasks_ = MakeTasks(config_.data());
    judged_tasks_ = std::ranges::count_if(tasks_, [](const std::unique_ptr<Task>& task) {
      return std::ranges::count(task->traits().splits, TaskSplit::Use::kValidation,
                                &TaskSplit::use) > 0;
    });
    CheckTasksCanStart(config_, tasks_);
    std::vector<std::string> names;
    names.reserve(tasks_.size());
    for (const std::unique_ptr<Task>& task : tasks_) names.push_back(task->traits().name);
    return "all there for " + Join(names, ", ");
  }

  // They are read when all is trained; the others before that.
  std::string CheckTestFiles() const {
    const TaskFolder folder = TaskFolderOf(config_.data());
    std::vector<std::string> names;
    for (const std::unique_ptr<Task>& task : tasks_) {
      for (const TaskSplit* split : TestSplits(*task, folder.directory)) {
        CheckFirstExamples(*task, *split, folder);
        names.push_back(PredictionsName(task->traits(), *split));
      }
    }
    return names.empty() ? "none" : "every file begins with examples: " + Join(names, ", ");
  }

  CheckResult CheckLabels() const {
    const std::vector<std::string> problems = CheckTaskLabels(config_, *tokenizer_, tasks_);
    if (problems.empty()) return "the model can give each";
    return {Join(problems, "; "), State::kWarning};
  }

  void CheckCorpora() {
    Check("training data", {}, [&] { return CheckCorpus(0); });
    Check("validation data", {}, [&] { return splits_.size() > 1 ? CheckCorpus(1) : "none"; });
    Check("first records", {"training data", "validation data"}, [&] {
      CheckFirstRecords(config_.data());
      return "every file begins with documents";
    });
  }

  std::string CheckCorpus(size_t split) {
    if (!tokenizer_) return Counted(std::ssize(ShardTasks(splits_[split])), "file");
    const PreparedState& state =
        states_[split].emplace(LookAtPrepared(splits_[split], *tokenizer_));
    return Counted(state.files, "file") + ", " +
           HumanBytes(static_cast<double>(state.source_bytes));
  }

  std::string CheckDirectory() const {
    CheckHoldsNoComparison();
    for (const Path& path :
         {directory_.root, directory_.checkpoints(), directory_.logs(), directory_.tensorboard()}) {
      CheckWritable(path, "train.directory");
    }
    return config_.train().directory();
  }

  // It has its runs in directories of their own.
  void CheckHoldsNoComparison() const {
    if (!Exists(directory_.comparison()) || directory_.is_run()) return;
    Fail(ExitCode::kConfig,
         "{} is the directory of a comparison, with runs of its own in it, and would be mixed with "
         "this run; choose another train.directory",
         directory_.root.string());
  }

  // Shards of a directory that the user named are made again if they do not do, but not in silence:
  // another run may be waiting for the ones that are there.
  CheckResult CheckShards() const {
    const Path prepared = directory_.Prepared(config_.data());
    if (std::filesystem::exists(prepared / kCorpusIndexName) &&
        !std::filesystem::exists(splits_.at(0).directory)) {
      Fail(ExitCode::kData,
           "{0} holds token shards itself, but data.prepared names the directory around \"train\" "
           "and \"validation\": move its files to {1}, or prepare again with `syntra prepare`",
           prepared.string(), splits_.at(0).directory.string());
    }
    int64_t files = 0, missing = 0;
    std::string mismatch;
    for (size_t i = 0; i < splits_.size(); ++i) {
      const PreparedState& state = *states_.at(i);
      files += state.files;
      missing += std::ssize(state.unfinished);
      if (mismatch.empty()) mismatch = state.mismatch;
      // Otherwise they are in the run directory.
      const bool is_named = !config_.data().prepared().empty();
      if (is_named && !state.unfinished.empty())
        CheckWritable(splits_[i].directory, "data.prepared");
    }
    const std::string text =
        fmt::format("{}: {} of {} can be used", prepared.string(), files - missing, files);
    if (!mismatch.empty()) {
      return {fmt::format("{}, and others will be made again: {}", text, mismatch),
              State::kWarning};
    }
    return text;
  }

  CheckResult CheckCheckpoints() {
    checkpoint_ = NewestSummary(directory_.checkpoints());
    if (!checkpoint_) return "none yet";
    RunIdentity identity;
    identity.config = config_;
    identity.tokenizer_identity = tokenizer_->identity();
    if (states_[0] && states_[0]->data_digest) {
      identity.shards_digest = ToHex(*states_[0]->data_digest);
    }
    CheckContinues(*checkpoint_, identity);
    if (!learns_tasks_) CheckSameCorpus();
    const std::string text =
        fmt::format("continues at step {} of {}", checkpoint_->info.step, config_.train().steps());
    if (const std::string change = ScheduleChange(*checkpoint_, config_); !change.empty()) {
      return {fmt::format("{}: {}", text, change), State::kWarning};
    }
    const std::string others = OtherChanges(*checkpoint_, config_);
    return others.empty() ? text : fmt::format("{}; changed: {}", text, others);
  }

  CheckResult CheckInitial() {
    if (config_.checkpoint().initial().empty()) return "checkpoint.initial is not set";
    if (!initial_) initial_ = InitialOf(config_);
    return initial_ ? initial_->path.string() : "not used, since the run has checkpoints";
  }

  CheckResult CheckMatches() const {
    const InitialMatch match =
        MatchInitial(*initial_, config_.checkpoint(), plan_->parameters(), tokenizer_->identity());
    if (match.differences.empty()) return match.summary;
    return {fmt::format("{}; the rest is initialised:\n  {}", match.summary, match.differences),
            State::kWarning};
  }

  // Where the index beside the shards is that of the run, the corpus must be the one it lists:
  // otherwise files would be tokenized, only to be refused.
  void CheckSameCorpus() const {
    CorpusIndex index;
    try {
      index = ReadIndex(splits_.at(0).directory);
    } catch (const Error&) {
      return;  // there is none, or it is damaged: the preparation makes it anew
    }
    if (!HasShards(*checkpoint_, ToHex(index.DataDigest()))) return;
    std::vector<std::string> before, now;
    for (const IndexEntry& entry : index.shards) before.push_back(Path(entry.file).stem().string());
    for (const ShardTask& task : ShardTasks(splits_.at(0))) {
      now.push_back(task.source.filename().string());
    }
    if (before == now) return;
    const auto [left, right] = std::ranges::mismatch(before, now);
    Fail(ExitCode::kCheckpoint,
         "{} was trained on another corpus (files: {} then, {} now); the first difference: {} in "
         "place of {}. Let data.train name the same files in the same order, or choose another "
         "train.directory",
         checkpoint_->path.string(), before.size(), now.size(),
         right == now.end() ? "nothing" : *right, left == before.end() ? "nothing" : *left);
  }

  CheckResult CheckSpace() const {
    const CheckpointConfig& how = config_.checkpoint();
    const int64_t done = checkpoint_ ? checkpoint_->info.step : 0;
    const int64_t left = std::max<int64_t>(0, config_.train().steps() - done);
    const std::vector<CheckpointRef> all = ListCheckpoints(directory_.checkpoints());
    const int64_t there = std::ssize(all);
    const int64_t scheduled =
        std::ranges::count_if(all, [schedule = ScheduleOf(config_)](const CheckpointRef& each) {
          return IsScheduled(schedule, each.step);
        });
    // One that is written stands beside those that are kept. The one that is kept beside the
    // scheduled ones is there already, or is the last to be written.
    int64_t saves = checkpoint_ ? 1 : 2;
    for (const int64_t every : {int64_t{how.every()}, SavedEvaluationsEvery(config_)}) {
      if (every > 0) saves += left / every;
    }
    const int64_t more =
        left > 0 ? std::clamp<int64_t>(int64_t{how.keep()} + 1 - scheduled, 1, saves) : 0;
    // Links to checkpoints, which take space once these are no longer kept.
    const int64_t best =
        left > 0 ? std::clamp<int64_t>(there + saves - how.keep(), 0, judged_tasks_) : 0;
    const int64_t milestones = how.milestone_every() > 0 ? left / how.milestone_every() : 0;
    // Each has the tokenizer's file beside the tensors.
    const double checkpoint_bytes =
        plan_->checkpoint_bytes() +
        (tokenizer_ ? static_cast<double>(tokenizer_->content().size()) : 0);
    std::vector<DiskNeed> needs{
        {Counted(more, "checkpoint"), directory_.checkpoints(),
         checkpoint_bytes * static_cast<double>(more), 0},
        {Counted(milestones, "milestone"), directory_.checkpoints(), 0,
         checkpoint_bytes * static_cast<double>(milestones)},
        {Counted(best, "best checkpoint"), directory_.root, 0,
         checkpoint_bytes * static_cast<double>(best)},
        {"metrics", directory_.root, 0, kMetricsBytesPerStep * static_cast<double>(left),
         /*is_estimated=*/true}};
    for (size_t i = 0; i < splits_.size(); ++i) {
      const PreparedState& state = *states_.at(i);
      needs.push_back({fmt::format("{} shards", i == 0 ? "training" : "validation"),
                       splits_[i].directory, state.low_bytes,
                       state.probable_bytes - state.low_bytes, /*is_estimated=*/true});
    }
    const DiskFinding finding = CheckDisk(needs);
    return {finding.text, finding.is_tight ? State::kWarning : State::kGood};
  }

  const Config& config_;
  RankPlaces places_;
  RunDirectory directory_;
  const bool learns_tasks_;
  std::vector<PrepareOptions> splits_;
  std::vector<Finding> findings_;
  // Results of earlier checks for later ones.
  std::shared_ptr<const TrainingPlan> plan_;
  std::vector<std::unique_ptr<Task>> tasks_;
  int64_t judged_tasks_ = 0;  // those with a validation split: each keeps its best checkpoint
  std::optional<Tokenizer> tokenizer_;
  std::array<std::optional<PreparedState>, 2> states_;  // of training and validation data
  std::optional<CheckpointSummary> checkpoint_;
  std::optional<InitialModel> initial_;
};

}  // namespace

PreflightReport Preflight(const Config& config, const RankPlaces& places,
                          std::optional<InitialModel> initial) {
  return Checks(config, places, std::move(initial)).Run();
}

std::vector<std::string> RequireNoFailure(const std::vector<Finding>& findings) {
  std::vector<std::string> warnings;
  std::vector<Finding> failures;
  for (const Finding& finding : findings) {
    if (finding.state == Finding::State::kFailed) failures.push_back(finding);
    if (finding.state == Finding::State::kWarning) {
      warnings.push_back(fmt::format("{}: {}", finding.subject, finding.detail));
    }
  }
  if (failures.empty()) return warnings;
  if (failures.size() == 1) throw Error(failures[0].code, failures[0].detail);
  std::string text;
  for (const Finding& failure : failures) text += fmt::format("error: {}\n", failure.detail);
  throw Error(failures[0].code, text + fmt::format("{} errors", failures.size()));
}

PassedPreflight PreflightOfRanks(const Config& config, Communicator& ranks, Backend& backend,
                                 std::optional<InitialModel> initial) {
  const RankPlaces places{
      .ranks = ranks.size(), .ranks_on_host = ranks.ranks_on_host(), .backend = &backend};
  if (ranks.rank() == 0) {
    PreflightReport report = Preflight(config, places, std::move(initial));
    return {RequireNoFailure(report.findings), std::move(report.plan),
            InitialOnAllRanks(std::move(report.initial), config, ranks)};
  }
  auto plan = PlanFor(config, places);
  if (ranks.rank_on_host() == 0 || !backend.device().is_host()) {
    CheckFits(*plan, places.ranks_on_host);
  }
  return {{}, std::move(plan), InitialOnAllRanks(std::move(initial), config, ranks)};
}

}  // namespace syntra
