// SPDX-License-Identifier: Apache-2.0
// Judges a model on a task: has it answer every validation example, unpacked, and computes the
// task's metrics.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/answers.h"
#include "train/evaluator.h"
#include "train/task_data.h"
#include "train/task_results.h"

namespace syntra {

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
  // Both must outlive it.
  TaskEvaluator(const TaskData& data, Answerer& answerer) : data_(data), answerer_(answerer) {}

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
  const TaskData& data_;
  Answerer& answerer_;
  TaskResult result_;
  std::map<std::string, Answers> answers_;
};

}  // namespace syntra
