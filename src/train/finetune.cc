// SPDX-License-Identifier: Apache-2.0
#include "train/finetune.h"

#include <algorithm>
#include <exception>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "checkpoint/verify.h"
#include "data/example.h"
#include "train/agreement.h"
#include "train/best_checkpoints.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/save_tries.h"
#include "train/task_data.h"
#include "train/task_evaluator.h"
#include "train/task_results.h"
#include "train/test_answers.h"

namespace syntra {
namespace {

constexpr int64_t kMostResultBytes = int64_t{16} << 20;

class Finetuning : public Workload {
 public:
  explicit Finetuning(const Config& config)
      : directory_{config.train().directory()},
        best_(directory_.best(), directory_.checkpoints()),
        test_(directory_) {}

  // The examples are read into memory at each start.
  bool Prepare(RunContext&) override { return true; }
  TrainingData Open(RunContext& run) override;
  std::string DescribeData() const override;
  std::vector<std::unique_ptr<Evaluator>> Evaluators(RunContext& run,
                                                     TrainingState& state) override;
  // The best checkpoint of a task could be one of those that are undone.
  bool may_roll_back() const override { return false; }
  NamedValues Evaluated(RunContext& run, TrainingState& state, int64_t step) override;
  bool Finish(RunContext& run, TrainingState& state) override;

 private:
  void WarnOfExamples(const Config& config) const;
  Path ModelFor(const Task& task) const;
  Checkpoint OpenModelFor(RunContext& run, const Task& task) const;
  bool AnswerTest(RunContext& run, TrainingState& state, const Task& task);
  void KeepBest(const TaskEvaluator& evaluator, int64_t step);
  TaskResults EarlierResults(int64_t step) const;
  NamedValues Judge(int64_t step, bool is_last);
  void AddKeptResult(const TaskData& task, const Json& before, TaskResults* results) const;
  void WriteResults() const;

  RunDirectory directory_;
  BestCheckpoints best_;
  TestAnswers test_;
  std::optional<Tokenizer> tokenizer_;
  FinetuningData data_;
  std::optional<Answerer> answerer_;
  std::vector<TaskEvaluator*> evaluators_;  // of each task with a validation split
  std::optional<SaveTries> tries_;          // of keeping what evaluations find
  // On rank 0, with those from before the run continued; absent before this process evaluates.
  std::optional<TaskResults> results_;
  std::string run_id_;
  int64_t first_step_ = 0;  // at which this process began to train
  // On rank 0, of each task's commonest answer.
  std::map<std::string, NamedValues> majority_;
};

TrainingData Finetuning::Open(RunContext& run) {
  const DataConfig& config = run.config.data();
  const uint64_t seed = run.config.train().seed();
  tokenizer_.emplace(OpenTokenizer(run.config, run.initial));
  data_ = FinetuningData::Read(run.config, *tokenizer_, [&run] { run.watchdog.Alive(); });
  WarnOfExamples(run.config);
  TestAnswers::CompareFiles(run, data_.tasks);
  const RowLayout& layout = ArchitectureOf(run.config.model()).layout();
  TrainingData training(data_.training, RowPacking::OfExamples(config, layout), seed);
  run.identity.tokenizer_identity = tokenizer_->identity();
  run.identity.tokenizer_model = tokenizer_->content();
  run.identity.data_digest = ToHex(training.ContentDigest());
  run.identity.task_digests = data_.task_digests;
  run.identity.validation_digest = ToHex(data_.validation_digest);
  run.identity.task_validation_digests = data_.task_validation_digests;
  return training;
}

void Finetuning::WarnOfExamples(const Config& config) const {
  if (data_.cut_examples > 0) {
    const bool text = ArchitectureOf(config.model()).outputs() == Outputs::kTokens;
    const ExampleLengths most = RowLengths(config.data());
    const char* verb = data_.cut_examples == 1 ? "is" : "are";
    Log().warn("{} {} longer than data.input_length {}{} and {} cut",
               Counted(data_.cut_examples, "training example"), verb, most.inputs,
               text ? fmt::format(" or data.target_length {}", most.targets) : "", verb);
  }
  for (const TaskData& task : data_.tasks) {
    const std::vector<std::string>& labels = task.labels_without_examples;
    if (labels.empty()) continue;
    Log().warn("task \"{}\": no training example has the label {}, so the model cannot learn it",
               task.name(), Join(labels, " or "));
  }
}

std::string Finetuning::DescribeData() const {
  std::vector<std::string> texts;
  for (const TaskData& task : data_.tasks) {
    texts.push_back(fmt::format("{} ({})", task.name(), WithThousands(task.training_examples)));
  }
  return "examples of " + Join(texts, ", ");
}

// The metrics of the answer that is right most often, given to every example.
NamedValues MajorityOf(const TaskData& data) {
  NamedValues values;
  for (const TaskSplitData& split : data.validation) {
    Answers answers;
    for (const TaskExample& example : split.examples) {
      answers.push_back({example, data.majority_answer});
    }
    const NamedValues of_split =
        MetricsOf(*data.task, JudgementsOf(*data.task, answers), SuffixOf(*split.split));
    values.insert(values.end(), of_split.begin(), of_split.end());
  }
  return values;
}

std::vector<std::unique_ptr<Evaluator>> Finetuning::Evaluators(RunContext& run,
                                                               TrainingState& state) {
  answerer_.emplace(state.replica.trained(), *tokenizer_, run.config, data_.tasks, run.ranks,
                    [&run](const AnswerProgress& now) {
                      run.watchdog.Alive();
                      if (!run.is_chief() || !run.chief->progress) return;
                      run.chief->progress->Evaluating(now.task.traits().name, now.done, now.total,
                                                      now.seconds);
                    });
  run_id_ = run.identity.run_id;
  first_step_ = state.step;
  tries_.emplace(run, "record of the evaluation");
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  for (const TaskData& task : data_.tasks) {
    if (task.validation.empty()) continue;  // the benchmarks' diagnostics have a test split alone
    auto evaluator = std::make_unique<TaskEvaluator>(
        task, *answerer_, [&state](int64_t step) { return state.saved_step == step; });
    evaluators_.push_back(evaluator.get());
    evaluators.push_back(std::move(evaluator));
    if (run.is_chief() && !task.majority_answer.empty()) majority_[task.name()] = MajorityOf(task);
  }
  if (evaluators.empty()) {
    Log().warn(
        "no task has a validation split, so nothing is evaluated; the last model answers the test "
        "splits");
  }
  return evaluators;
}

// If the disk is full, the old best checkpoint is still there, with its predictions.
void Finetuning::KeepBest(const TaskEvaluator& evaluator, int64_t step) {
  std::vector<StagedFile> predictions;
  for (const auto& [name, answers] : evaluator.answers()) {
    predictions.push_back(
        StagePredictions(directory_.predictions(), name, *evaluator.data().task, answers));
  }
  best_.Keep(evaluator.data().name(), step);
  for (StagedFile& file : predictions) file.PutInPlace();
}

void Finetuning::WriteResults() const {
  Json json = results_->ToJson();
  Json& majority = json["majority"] = Json::object();
  for (const TaskData& task : data_.tasks) {
    const auto found = majority_.find(task.name());
    if (found != majority_.end()) majority[task.name()] = ToJson(found->second);
  }
  json["majority_average"] = ToJson(results_->AverageOf(majority_));
  if (!test_.metrics().empty()) json["test"] = test_.metrics();
  ReplaceFileDurably(directory_.root / kResultsFile, JsonText(json, 1) + "\n");
}

NamedValues Finetuning::Evaluated(RunContext& run, TrainingState& state, int64_t step) {
  // Without links in the file system, the best checkpoint of each task is copied.
  const Watchdog::Phase phase(
      run.watchdog, RunPhase::kSave, step,
      state.replica.plan().checkpoint_bytes() * static_cast<double>(data_.tasks.size()));
  NamedValues unsaved;
  if (run.is_chief()) unsaved = Judge(step, step >= run.config.train().steps());
  run.ranks.Barrier();
  return unsaved;
}

// What results.json says; null if it is missing or damaged.
Json ResultsBefore(const Path& directory) {
  const std::optional<std::string> text = ReadOwnFile(directory / kResultsFile, kMostResultBytes);
  const Json json = text ? TryParseJson(*text) : Json();
  const bool usable = TaskResults::IsWellFormed(json);
  if (text && !usable) Log().warn("{} in {} is damaged", kResultsFile, directory.string());
  return usable ? json : Json();
}

// The result of a best checkpoint that this run has kept counts even if metrics.jsonl has lost its
// line, as on a disk that was full for a moment.
void Finetuning::AddKeptResult(const TaskData& task, const Json& before,
                               TaskResults* results) const {
  if (before.is_null()) return;
  for (const CheckpointRef& kept : ListCheckpoints(best_.DirectoryOf(task.name()))) {
    if (kept.step > first_step_) continue;
    try {
      if (ReadManifest(kept.path).info.run_id == run_id_) {
        results->AddFrom(before, task.name(), kept.step);
      }
    } catch (const Error& error) {
      Log().warn("{} does not count as the best of {}: {}", kept.path.string(), task.name(),
                 error.what());
    }
  }
}

// What was evaluated before `step`, at which this process evaluates for the first time. What a run
// that continues evaluates again is not in metrics.jsonl any more.
TaskResults Finetuning::EarlierResults(int64_t step) const {
  TaskResults results = ResultsOf(data_.tasks);
  results.AddHistory(directory_.metrics(), step);
  const Json before = ResultsBefore(directory_.root);
  for (const TaskData& task : data_.tasks) AddKeptResult(task, before, &results);
  return results;
}

// A result whose model cannot be kept does not count, as if its checkpoint had failed: the
// UnsavedKey of its task is returned. What else cannot be written is written after the next
// evaluation.
NamedValues Finetuning::Judge(int64_t step, bool is_last) {
  if (!results_) results_ = EarlierResults(step);
  NamedValues unsaved;
  const bool recorded = tries_->Try(step, is_last, [&] {
    std::exception_ptr failure;
    for (const TaskEvaluator* evaluator : evaluators_) {
      TaskResult result = evaluator->result();
      try {
        if (results_->IsBest(result)) KeepBest(*evaluator, step);
      } catch (const std::exception&) {
        failure = std::current_exception();
        result.is_saved = false;
        unsaved.push_back({UnsavedKey(result.task), 1});
      }
      results_->Add(step, std::move(result));
    }
    WriteResults();
    if (failure) std::rethrow_exception(failure);
  });
  if (recorded) tries_->Succeeded();
  const auto is_saved = [](const TaskEvaluator* each) { return each->result().is_saved; };
  if (!std::ranges::all_of(evaluators_, is_saved)) {
    Log().warn("the evaluation at step {} does not count as the best: its checkpoint failed", step);
  }
  return unsaved;
}

// The best checkpoint of the task or, for a diagnostic, of the task that it belongs to. The run's
// last one where that has no validation split, or is none of the run's.
Path Finetuning::ModelFor(const Task& task) const {
  for (const TaskData& owner : data_.tasks) {
    const bool is_judged = !owner.validation.empty();
    if (!is_judged || !IsAnsweredBy(task.traits(), owner.task->traits())) continue;
    if (const BestResult* best = results_->Find(owner.name())) {
      const Path kept = best_.DirectoryOf(owner.name()) / StepName(best->step);
      if (Exists(kept)) return kept;
      Log().warn("the best checkpoint of {}, {}, is missing: the last model answers its test split",
                 owner.name(), kept.string());
    } else if (const Path kept = best_.DirectoryOf(owner.name()); Exists(kept)) {
      return kept;
    }
  }
  return directory_.checkpoints();
}

// Rank 0 chooses it.
Checkpoint Finetuning::OpenModelFor(RunContext& run, const Task& task) const {
  std::optional<Checkpoint> opened;
  if (run.is_chief()) opened = OpenNewestIn(ModelFor(task));
  return *OpenOnAllRanks(std::move(opened), run.ranks, kShareRunDirectory);
}

bool Finetuning::AnswerTest(RunContext& run, TrainingState& state, const Task& task) {
  return test_.Answer(run, state.step, task, *answerer_, [&] {
    const Watchdog::Phase load(
        run.watchdog, RunPhase::kLoad, state.step,
        BytesBelow(directory_.best()) + BytesBelow(directory_.checkpoints()));
    Checkpoint checkpoint = OpenModelFor(run, task);
    LoadParameters(checkpoint, state.replica);
  });
}

bool Finetuning::Finish(RunContext& run, TrainingState& state) {
  run.ranks.Barrier();  // until rank 0 has kept the best checkpoints
  // Where no task has a validation split, there are none.
  if (run.is_chief() && !results_) results_ = ResultsOf(data_.tasks);
  for (const TaskData& data : data_.tasks) {
    if (!AnswerTest(run, state, *data.task)) return false;
  }
  if (run.is_chief()) {
    run.chief->lock.CheckHeld();
    test_.ZipSubmissions();
    WriteResults();
  }
  return true;
}

}  // namespace

Json ReadResults(const Path& directory) {
  Json results = ResultsBefore(directory);
  if (results.is_null()) {
    Fail(ExitCode::kCheckpoint,
         "the run {0} is done, but its {1} is missing or damaged; remove {0}/STATUS, and the same "
         "command evaluates the run again and writes {1}",
         directory.string(), kResultsFile);
  }
  return results;
}

RunOutcome Finetune(const Config& config, const RankContext& rank,
                    std::optional<InitialModel> initial) {
  Finetuning finetuning(config);
  return Train(finetuning, config, rank, std::move(initial));
}

}  // namespace syntra
