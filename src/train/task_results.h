// SPDX-License-Identifier: Apache-2.0
// The results of a finetuning run: the best evaluation of each task, the predictions made there,
// and the average over the tasks, as the Synthesizer paper reports them (best checkpoint per task).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "metrics/metric.h"

namespace syntra {

// The values of a task, in percent, in the order of its metrics: {"f1", 88.2}, {"accuracy", 84.1}.
struct TaskResult {
  std::string task;
  NamedValues values;
  bool is_saved = true;  // whether the model is saved; only then can it be kept as the best

  // The mean of the values, which decides which checkpoint is the best.
  double Score() const;
};

struct BestResult {
  TaskResult result;
  int64_t step = 0;
};

class TaskResults {
 public:
  // `tasks` in the order of the tables; `not_averaged`: those of them that are no part of the
  // average (TaskTraits::is_averaged).
  explicit TaskResults(std::vector<std::string> tasks = {}, std::set<std::string> not_averaged = {})
      : tasks_(std::move(tasks)), not_averaged_(std::move(not_averaged)) {}

  // Whether the result would be the task's best: its model is saved, and it is better than the
  // others or the latest of equals.
  bool IsBest(const TaskResult& result) const;
  void Add(int64_t step, TaskResult result);
  // Adds what metrics.jsonl says of the evaluations before `step`.
  void AddHistory(const Path& metrics, int64_t step);
  // Adds the task's result from what ToJson has made, if it is of that step.
  void AddFrom(const Json& json, const std::string& task, int64_t step);

  const BestResult* Find(const std::string& task) const;
  // The mean over the tasks that have a result of the means of their values; nothing where none of
  // them is averaged.
  std::optional<double> Average() const;
  // As Average, of other values of these tasks. Also nothing where the values of a task are
  // missing, since averages over different tasks cannot be compared.
  std::optional<double> AverageOf(const std::map<std::string, NamedValues>& values) const;
  // {"tasks": {"cola": {"matthews": 53.1}}, "average": 53.1, "step": 1000, "best_steps": {...}}.
  // The average is null where there is none.
  Json ToJson() const;
  // Whether `json` is as ToJson makes it, with whatever else has been added under names that a
  // results.json has ("majority", "test"): files may be damaged.
  static bool IsWellFormed(const Json& json);

 private:
  std::vector<std::string> tasks_;
  std::set<std::string> not_averaged_;
  std::map<std::string, BestResult> best_;
  int64_t last_step_ = 0;
};

// The name beside a task's values in metrics.jsonl which says that their model was not saved.
std::string UnsavedKey(const std::string& task);

// {"f1": 88.2, "accuracy": 84.1}, and null for nothing.
Json ToJson(const NamedValues& values);
Json ToJson(std::optional<double> value);

}  // namespace syntra
