// SPDX-License-Identifier: Apache-2.0
// Judges a model on a task: lets it answer every validation example, unpacked, and computes the
// task's metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/staged_file.h"
#include "train/answers.h"
#include "train/evaluator.h"
#include "train/task_data.h"
#include "train/task_results.h"

namespace syntra {

std::vector<Judgement> JudgementsOf(const Task& task, const Answers& answers);

// The values of a task's metrics over a split; `suffix` goes after each name.
NamedValues MetricsOf(const Task& task, std::span<const Judgement> judgements,
                      const std::string& suffix = "");

// "f1 88.21, accuracy 84.10".
std::string Describe(const NamedValues& values);

// DIRECTORY/NAME.jsonl, a line an answer, still to be put in place.
StagedFile StagePredictions(const Path& directory, const std::string& name, const Task& task,
                            const Answers& answers);

// An empty TaskResults for these tasks.
TaskResults ResultsOf(std::span<const TaskData> tasks);

class TaskEvaluator : public Evaluator {
 public:
  // data and answerer must outlive it. `is_saved`: whether this step's model is saved, equal on all
  // ranks.
  TaskEvaluator(const TaskData& data, Answerer& answerer,
                std::function<bool(int64_t step)> is_saved)
      : data_(data), answerer_(answerer), is_saved_(std::move(is_saved)) {}

  // Values are named MetricKey(task, value), and "cola_invalid" is the percentage of answers that
  // are not a label. The values include an UnsavedKey if the model is not saved.
  std::optional<EvaluationResult> Evaluate(int64_t step,
                                           const std::function<bool()>& stop) override;

  const TaskData& data() const { return data_; }
  // The result of the last evaluation.
  const TaskResult& result() const { return result_; }
  // The answers of the last evaluation, by PredictionsName.
  const std::map<std::string, Answers>& answers() const { return answers_; }

 private:
  const TaskData& data_;
  Answerer& answerer_;
  std::function<bool(int64_t step)> is_saved_;
  TaskResult result_;
  std::map<std::string, Answers> answers_;
};

}  // namespace syntra
