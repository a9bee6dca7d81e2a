// SPDX-License-Identifier: Apache-2.0
#include "train/finetune.h"

#include "base/log.h"
#include "base/text.h"
#include "decode/batch_decoder.h"
#include "train/best_checkpoints.h"
#include "train/preflight.h"
#include "train/run_tokenizer.h"
#include "train/task_data.h"
#include "train/task_evaluator.h"
#include "train/task_results.h"

namespace syntra {
namespace {

class Finetuning : public Workload {
 public:
  explicit Finetuning(const Config& config)
      : directory_{config.train().directory()},
        best_(directory_.root / "best", directory_.checkpoints()) {}

  // The examples are read into memory at each start.
  bool Prepare(RunContext&) override { return true; }
  TrainingData Open(RunContext& run) override;
  std::string DescribeData() const override;
  std::vector<std::unique_ptr<Evaluator>> Evaluators(RunContext& run,
                                                     TrainingState& state) override;
  bool saves_evaluated() const override { return true; }
  void Evaluated(RunContext& run, TrainingState& state, int64_t step) override;

 private:
  void KeepBest(const TaskEvaluator& evaluator, const TaskData& data, int64_t step);
  void WriteResults() const;

  RunDirectory directory_;
  BestCheckpoints best_;
  std::optional<Tokenizer> tokenizer_;
  FinetuningData data_;
  std::optional<BatchDecoder> decoder_;
  std::vector<TaskEvaluator*> evaluators_;  // one a task
  std::optional<TaskResults> results_;      // from the first evaluation on
};

TrainingData Finetuning::Open(RunContext& run) {
  const DataConfig& config = run.config.data();
  const uint64_t seed = run.config.train().seed();
  tokenizer_.emplace(OpenTokenizer(run.config));
  data_ = FinetuningData::Read(config, *tokenizer_, seed);
  if (data_.cut_examples > 0) {
    Log().warn(
        "{} training examples are longer than data.input_length {} or data.target_length "
        "{} and are cut",
        WithThousands(data_.cut_examples), config.input_length(), config.target_length());
  }
  TrainingData training(data_.training, Packing::OfExamples(config), seed);
  run.identity.tokenizer_identity = tokenizer_->identity();
  run.identity.tokenizer_model = tokenizer_->content();
  run.identity.data_digest = ToHex(training.ContentDigest());
  run.identity.validation_digest = ToHex(data_.validation_digest);
  return training;
}

std::string Finetuning::DescribeData() const {
  std::vector<std::string> texts;
  for (const TaskData& task : data_.tasks) {
    texts.push_back(fmt::format("{} ({})", task.name(), WithThousands(task.training_examples)));
  }
  return "examples of " + Join(texts, ", ");
}

std::vector<std::unique_ptr<Evaluator>> Finetuning::Evaluators(RunContext& run,
                                                               TrainingState& state) {
  decoder_.emplace(state.replica.trained(), *tokenizer_,
                   DecodeSettings{.decoding = {},
                                  .input_length = state.data.input_length(),
                                  .output_length = state.data.target_length()});
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  for (const TaskData& task : data_.tasks) {
    auto evaluator = std::make_unique<TaskEvaluator>(run, task, *tokenizer_, *decoder_);
    evaluators_.push_back(evaluator.get());
    evaluators.push_back(std::move(evaluator));
  }
  return evaluators;
}

void Finetuning::KeepBest(const TaskEvaluator& evaluator, const TaskData& data, int64_t step) {
  best_.Keep(data.name(), step);
  const Path predictions = directory_.root / "predictions";
  CreateDirectoriesDurably(predictions);
  for (const auto& [name, answers] : evaluator.answers()) {
    std::string text;
    for (const Prediction& answer : answers) {
      text += PredictionLine(*data.task, answer);
      text += '\n';
    }
    ReplaceFileDurably(predictions / (name + ".jsonl"), text);
  }
}

// The metrics of the answer that is right most often, given to every example.
Json MajorityOf(const TaskData& data) {
  Json values = Json::object();
  for (const TaskSplitData& split : data.validation) {
    Answers answers;
    for (const TaskExample& example : split.examples) {
      answers.push_back({example, data.majority_answer});
    }
    for (const NamedValue& value : MetricsOf(*data.task, answers, SuffixOf(*split.split))) {
      values[value.name] = value.value;
    }
  }
  return values;
}

void Finetuning::WriteResults() const {
  Json json = results_->ToJson();
  Json majority = Json::object();
  for (const TaskData& task : data_.tasks) {
    if (!task.majority_answer.empty()) majority[task.name()] = MajorityOf(task);
  }
  json["majority"] = majority;
  ReplaceFileDurably(directory_.root / kResultsFile, JsonText(json, 1) + "\n");
}

void Finetuning::Evaluated(RunContext& run, TrainingState&, int64_t step) {
  if (!run.is_chief()) return;
  if (!results_) {
    std::vector<std::string> names;
    for (const TaskData& task : data_.tasks) names.push_back(task.name());
    results_.emplace(names);
    results_->AddHistory(directory_.metrics(), step);
  }
  for (size_t i = 0; i < evaluators_.size(); ++i) {
    if (results_->Add(step, evaluators_[i]->result())) {
      KeepBest(*evaluators_[i], data_.tasks[i], step);
    }
  }
  WriteResults();
}

}  // namespace

RunOutcome Finetune(const Config& config, Communicator& ranks, Backend& backend,
                    Watchdog& watchdog) {
  std::optional<Watchdog::Phase> phase(std::in_place, watchdog, RunPhase::kPrepare);
  PassedPreflight preflight = PreflightOfRanks(config, ranks, backend);
  phase.reset();
  Finetuning finetuning(config);
  return Train(finetuning, config, ranks, backend, watchdog, std::move(preflight));
}

}  // namespace syntra
