// SPDX-License-Identifier: Apache-2.0
// What a finetuning run has reached: the best evaluation of each task, the predictions made there,
// and the average over the tasks, as the Synthesizer paper reports them (best checkpoint per task).
#pragma once

#include <cstdint>
#include <map>
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

  // What decides which checkpoint is the best: the mean of the values.
  double Score() const;
};

struct BestResult {
  TaskResult result;
  int64_t step = 0;
};

class TaskResults {
 public:
  // Takes part in the order of the tables: tasks in the order of `tasks`.
  explicit TaskResults(std::vector<std::string> tasks) : tasks_(std::move(tasks)) {}

  // True if it is the task's best now: better than the others, or the later of equals.
  bool Add(int64_t step, TaskResult result);
  // Adds what metrics.jsonl says of the evaluations before `step`.
  void AddHistory(const Path& metrics, int64_t step);

  int64_t last_step() const { return last_step_; }
  const BestResult* Find(const std::string& task) const;
  // The mean over the tasks that have a result of the means of their values.
  double Average() const;
  // {"tasks": {"cola": {"matthews": 53.1}}, "average": 53.1, "step": 1000, "best_steps": {...}}.
  Json ToJson() const;

 private:
  std::vector<std::string> tasks_;
  std::map<std::string, BestResult> best_;
  int64_t last_step_ = 0;
};

// The name of a task's value in metrics.jsonl: "cola/matthews".
std::string MetricKey(const std::string& task, const std::string& value);

}  // namespace syntra
