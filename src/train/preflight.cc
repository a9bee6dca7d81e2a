// SPDX-License-Identifier: Apache-2.0
#include "train/preflight.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "config/unread.h"
#include "data/example.h"
#include "plan/fits.h"
#include "run/run_lock.h"
#include "train/continuation.h"
#include "train/corpus_checks.h"
#include "train/disk_needs.h"
#include "train/initial.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/snapshot.h"
#include "train/task_checks.h"

namespace syntra {
namespace {

// More rows of the embedding than this, relative to those that are needed, are taken for a mistake.
constexpr double kMostRowsOverTokens = 1.5;

using State = Finding::State;

std::shared_ptr<const TrainingPlan> PlanFor(const Config& config, const RankPlaces& places) {
  return TrainingPlan::Make(config, {.ranks = places.ranks, .backend = places.backend});
}

// The checks in their order, and those of what every run has.
class Checks {
 public:
  Checks(const Config& config, const RankPlaces& places, std::optional<InitialModel> initial)
      : config_(config),
        places_(places),
        directory_{config.train().directory()},
        initial_(std::move(initial)) {
    if (HasTasks(config.data())) {
      tasks_.emplace(config);
    } else {
      corpora_.emplace(config, directory_);
    }
  }

  PreflightReport Run() {
    Findings found;
    found.Check("model", {}, [&] { return CheckModel(); });
    found.Check("precision", {}, [&] { return CheckPrecision(); });
    found.Check("schedule", {}, [&] { return CheckSchedule(); });
    found.Check("settings", {}, [&] { return CheckSettings(); });
    if (tasks_) {
      found.Check("task files", {}, [&] { return tasks_->CheckFiles(); });
      found.Check("held-out data", {"task files"}, [&] { return tasks_->CheckHeldOut(); });
      found.Check("test files", {"task files"}, [&] { return tasks_->CheckTestFiles(); });
    }
    found.Check("initial", {}, [&] { return CheckInitial(); });
    found.Check("tokenizer", {"initial"}, [&] { return CheckTokenizer(); });
    if (tasks_) {
      found.Check("labels", {"task files", "tokenizer"},
                  [&] { return tasks_->CheckLabels(*tokenizer_); });
    }
    if (initial_) found.Check("start", {"model", "tokenizer"}, [&] { return CheckMatches(); });
    if (corpora_) {
      found.Check("training data", {}, [&] { return corpora_->CheckTraining(tokenizer_); });
      found.Check("validation data", {}, [&] { return corpora_->CheckValidation(tokenizer_); });
      found.Check("held-out data", {"training data", "validation data"},
                  [&] { return corpora_->CheckHeldOut(); });
      found.Check("first records", {"training data", "validation data"},
                  [&] { return corpora_->CheckFirst(); });
    }
    found.Check("run directory", {}, [&] { return CheckDirectory(); });
    found.Check("lock", {"run directory"}, [&] {
      RunLock::RequireFree(directory_.root);
      return "no other run is in the directory";
    });
    if (corpora_) {
      found.Check("token shards", {"tokenizer", "training data", "validation data"},
                  [&] { return corpora_->CheckShards(); });
    }
    found.Check("checkpoints", {"tokenizer", "run directory"}, [&] { return CheckCheckpoints(); });
    found.Check("disk", {"model", "run directory", "token shards"}, [&] { return CheckSpace(); });
    found.Check("memory", {"model"}, [&] { return CheckFits(*plan_, places_.ranks_on_host); });
    return {std::move(found).Take(), std::move(plan_), std::move(initial_)};
  }

 private:
  CheckResult CheckSchedule() const {
    const ScheduleConfig& schedule = config_.optimizer().schedule();
    const std::string text = ScheduleConfig::Kind_Name(schedule.kind());
    const int64_t steps = config_.train().steps(), warmup = schedule.warmup_steps();
    // Schedules that fall to a final rate are refused in that case, and RSQRT does not rise.
    if (schedule.kind() == ScheduleConfig::RSQRT || warmup < steps) return text;
    return {fmt::format("{} rises to its rate {} over warmup_steps {}, but the run ends after {} "
                        "steps; set optimizer.schedule.warmup_steps to fewer",
                        text, schedule.rate(), warmup, steps),
            State::kWarning};
  }

  CheckResult CheckSettings() const {
    const std::vector<std::string> unread = UnreadSettings(config_);
    if (unread.empty()) return "none is known to be without effect";
    return {Join(unread, "\n  "), State::kWarning};
  }

  CheckResult CheckPrecision() const {
    const TrainConfig& train = config_.train();
    const std::string text = TrainConfig::Precision_Name(train.precision());
    const bool narrow = train.precision() == TrainConfig::BF16;
    if (places_.backend->MultipliesBFloat16()) {
      return narrow ? text : text + "; BF16 would be faster on this processor";
    }
    if (!narrow) return text;
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
    const int32_t rows = config_.model().vocabulary_size();
    const bool is_trained = HasTrainedEmbedding();
    (is_trained ? CheckFitsTrained : CheckCanTrain)(*tokenizer_, rows);
    const std::string text =
        fmt::format("{}: {} pieces and {} sentinels", tokenizer_->path().string(),
                    tokenizer_->piece_count(), tokenizer_->extra_ids());
    const int32_t enough = VocabularySizeFor(*tokenizer_);
    if (is_trained || rows <= kMostRowsOverTokens * enough) return text;
    return {fmt::format("{}; model.vocabulary_size is {}, but there are {} tokens: rows without a "
                        "token take memory and time, and {} would do",
                        text, rows, tokenizer_->vocabulary_size(), enough),
            State::kWarning};
  }

  // Whether the model's embedding is that of one which the run continues with or starts from.
  bool HasTrainedEmbedding() const {
    if (!ListCheckpoints(directory_.checkpoints()).empty()) return true;
    if (!initial_) return false;
    const TensorSource::Types& tensors = initial_->parameters->tensors();
    const auto embedding = tensors.find("embedding");
    return embedding != tensors.end() &&
           embedding->second.shape[0] == config_.model().vocabulary_size();
  }

  std::string CheckDirectory() const {
    CheckHoldsNoComparison();
    for (const Path& path :
         {directory_.root, directory_.checkpoints(), directory_.logs(), directory_.tensorboard()}) {
      CheckWritable(path, "train.directory");
    }
    return config_.train().directory();
  }

  // A comparison has its runs in directories of their own.
  void CheckHoldsNoComparison() const {
    if (!Exists(directory_.comparison()) || directory_.is_run()) return;
    Fail(ExitCode::kConfig,
         "{} is the directory of a comparison, with runs of its own in it, and would be mixed with "
         "this run; choose another train.directory",
         directory_.root.string());
  }

  CheckResult CheckCheckpoints() {
    checkpoint_ = NewestSummary(directory_.checkpoints());
    if (!checkpoint_) return "none yet";
    RunIdentity identity;
    identity.config = config_;
    identity.tokenizer_identity = tokenizer_->identity();
    if (corpora_) identity.shards_digest = corpora_->ShardsDigest();
    CheckContinues(*checkpoint_, identity);
    if (corpora_) corpora_->CheckIsThatOf(*checkpoint_);
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

  CheckResult CheckSpace() const {
    RunFiles files;
    if (checkpoint_) files.saved_step = checkpoint_->info.step;
    // Each has the tokenizer's file beside the tensors.
    files.checkpoint_bytes = plan_->checkpoint_bytes() +
                             (tokenizer_ ? static_cast<double>(tokenizer_->content().size()) : 0);
    if (tasks_) files.best_checkpoints = tasks_->judged();
    std::vector<DiskNeed> needs = RunDiskNeeds(config_, directory_, files);
    if (corpora_) std::ranges::move(corpora_->DiskNeeds(), std::back_inserter(needs));
    const DiskFinding finding = CheckDisk(needs);
    return {finding.text, finding.is_tight ? State::kWarning : State::kGood};
  }

  const Config& config_;
  RankPlaces places_;
  RunDirectory directory_;
  std::optional<TaskChecks> tasks_;      // of a run that learns tasks
  std::optional<CorpusChecks> corpora_;  // of one that does not
  // Results of earlier checks for later ones.
  std::shared_ptr<const TrainingPlan> plan_;
  std::optional<Tokenizer> tokenizer_;
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
    std::vector<std::string> warnings = RequireNoFailure(report.findings);
    std::optional<InitialModel> kept = KeepInitial(std::move(report.initial), config);
    return {std::move(warnings), std::move(report.plan),
            InitialOnAllRanks(std::move(kept), config, ranks)};
  }
  auto plan = PlanFor(config, places);
  if (ranks.rank_on_host() == 0 || !backend.device().is_host()) {
    CheckFits(*plan, places.ranks_on_host);
  }
  return {{}, std::move(plan), InitialOnAllRanks(std::move(initial), config, ranks)};
}

}  // namespace syntra
