// SPDX-License-Identifier: Apache-2.0
// Judges a model on a task: decodes every validation example and computes the task's metrics, as
// T5 evaluates (greedy decoding, the whole split, unpacked).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decode/batch_decoder.h"
#include "train/evaluator.h"
#include "train/run_context.h"
#include "train/task_data.h"
#include "train/task_results.h"
#include "train/trainer.h"

namespace syntra {

// A decoder's answers to all examples of a split.
using Answers = std::vector<Prediction>;

// An example's inputs as in training: cut so that the EOS has room.
DecodeRequest RequestOf(const TaskExample& example, const Tokenizer& tokenizer,
                        int64_t input_length);

// Greedy answers, in the order of the examples. All ranks share the work and get all answers.
// `stop` as for Evaluator::Evaluate.
std::optional<Answers> AnswerAll(std::span<const TaskExample> examples, const Tokenizer& tokenizer,
                                 BatchDecoder& decoder, Communicator& ranks,
                                 const std::function<bool()>& stop);

std::vector<Judgement> JudgementsOf(const Task& task, const Answers& answers);

// The values of a task's metrics over a split; `suffix` goes behind each name.
NamedValues MetricsOf(const Task& task, std::span<const Judgement> judgements,
                      const std::string& suffix = "");

// "matched" of "validation_matched"; empty for "validation".
std::string SuffixOf(const TaskSplit& split);

// The lines of a file of predictions.
std::string PredictionLines(const Task& task, const Answers& answers);

class TaskEvaluator : public Evaluator {
 public:
  // All must outlive it.
  TaskEvaluator(RunContext& run, const TaskData& data, const Tokenizer& tokenizer,
                BatchDecoder& decoder)
      : run_(run), data_(data), tokenizer_(tokenizer), decoder_(decoder) {}

  // Values are called MetricKey(task, value), and "cola_invalid" is the percentage of answers that
  // are no label.
  std::optional<EvaluationResult> Evaluate(int64_t step,
                                           const std::function<bool()>& stop) override;

  const TaskData& data() const { return data_; }
  // Of the last evaluation.
  const TaskResult& result() const { return result_; }
  // By the name of their file: "cola", "mnli_matched".
  const std::map<std::string, Answers>& answers() const { return answers_; }

 private:
  RunContext& run_;
  const TaskData& data_;
  const Tokenizer& tokenizer_;
  BatchDecoder& decoder_;
  TaskResult result_;
  std::map<std::string, Answers> answers_;
};

}  // namespace syntra
