// SPDX-License-Identifier: Apache-2.0
#include "train/task_results.h"

#include "metrics/average.h"
#include "run/metrics_log.h"

namespace syntra {

std::string UnsavedKey(const std::string& task) { return task + "_unsaved"; }

Json ToJson(const NamedValues& values) {
  Json json = Json::object();
  for (const NamedValue& value : values) json[value.name] = value.value;
  return json;
}

Json ToJson(std::optional<double> value) { return value ? Json(*value) : Json(); }

double TaskResult::Score() const { return BenchmarkAverage({&values, 1}); }

bool TaskResults::IsBest(const TaskResult& result) const {
  const BestResult* best = Find(result.task);
  // The later of equals: Matthews correlation is 0 for answers that are no label at all, as an
  // untrained model gives, and for a model that gives every example the same one.
  return result.is_saved && (!best || best->result.Score() <= result.Score());
}

void TaskResults::Add(int64_t step, TaskResult result) {
  last_step_ = std::max(last_step_, step);
  if (!IsBest(result)) return;
  BestResult& best = best_[result.task];
  best = {std::move(result), step};
}

void TaskResults::AddHistory(const Path& metrics, int64_t step) {
  VisitLines(metrics, [&](int64_t at, const Json& line) {
    if (at >= step) return;
    std::map<std::string, TaskResult> results;
    for (const auto& [key, value] : line.items()) {
      const std::optional<TaskMetric> metric = TaskMetricOf(key);
      if (!metric || !value.is_number()) continue;
      const std::string task(metric->task);
      results[task].task = task;
      results[task].values.push_back({std::string(metric->value), value});
    }
    for (auto& [task, result] : results) {
      result.is_saved = !line.contains(UnsavedKey(task));
      Add(at, std::move(result));
    }
  });
}

void TaskResults::AddFrom(const Json& json, const std::string& task, int64_t step) {
  const Json values = json.at("tasks").value(task, Json::object());
  if (IntegerIn(json.at("best_steps"), task, -1) != step) return;
  TaskResult result{.task = task, .values = {}};
  for (const auto& [name, value] : values.items()) {
    if (value.is_number()) result.values.push_back({name, value});
  }
  if (!result.values.empty()) Add(step, std::move(result));
}

const BestResult* TaskResults::Find(const std::string& task) const {
  const auto it = best_.find(task);
  return it == best_.end() ? nullptr : &it->second;
}

std::optional<double> TaskResults::Average() const {
  std::map<std::string, NamedValues> values;
  for (const auto& [task, best] : best_) values[task] = best.result.values;
  return AverageOf(values);
}

std::optional<double> TaskResults::AverageOf(
    const std::map<std::string, NamedValues>& values) const {
  std::vector<NamedValues> averaged;
  for (const auto& [task, best] : best_) {
    if (not_averaged_.contains(task)) continue;
    const auto found = values.find(task);
    if (found == values.end()) return std::nullopt;
    averaged.push_back(found->second);
  }
  if (averaged.empty()) return std::nullopt;
  return BenchmarkAverage(averaged);
}

Json TaskResults::ToJson() const {
  Json tasks = Json::object(), steps = Json::object();
  for (const std::string& task : tasks_) {
    const BestResult* best = Find(task);
    if (!best) continue;
    tasks[task] = syntra::ToJson(best->result.values);
    steps[task] = best->step;
  }
  return {{"tasks", tasks},
          {"average", syntra::ToJson(Average())},
          {"step", last_step_},
          {"best_steps", steps}};
}

namespace {

// {"cola": {"matthews": 53.1}}
bool AreValuesOfTasks(const Json& json) {
  if (!json.is_object()) return false;
  for (const Json& task : json) {
    if (!task.is_object()) return false;
    for (const Json& value : task) {
      if (!value.is_number()) return false;
    }
  }
  return true;
}

}  // namespace

bool TaskResults::IsWellFormed(const Json& json) {
  if (!json.is_object() || !json.contains("average")) return false;
  for (const char* average : {"average", "majority_average"}) {
    const Json value = json.value(average, Json());
    if (!value.is_null() && !value.is_number()) return false;
  }
  if (!json.value("best_steps", Json()).is_object()) return false;
  return AreValuesOfTasks(json.value("tasks", Json())) &&
         AreValuesOfTasks(json.value("majority", Json::object())) &&
         AreValuesOfTasks(json.value("test", Json::object()));
}

}  // namespace syntra
