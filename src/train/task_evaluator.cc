// SPDX-License-Identifier: Apache-2.0
#include "train/task_evaluator.h"

#include <set>

#include "base/text.h"
#include "run/metrics_log.h"

namespace syntra {
namespace {

std::string Summary(const TaskResult& result, std::span<const Judgement> judgements) {
  const double invalid = InvalidPercent(judgements);
  return fmt::format(
      "{}: {} over {}{}", result.task, Describe(result.values),
      Counted(std::ssize(judgements), "example"),
      invalid > 0 ? fmt::format("; {:.1f} % of the answers are not valid", invalid) : "");
}

}  // namespace

std::string Describe(const NamedValues& values) {
  std::vector<std::string> texts;
  for (const NamedValue& value : values) {
    texts.push_back(fmt::format("{} {:.2f}", value.name, value.value));
  }
  return Join(texts, ", ");
}

std::vector<Judgement> JudgementsOf(const Task& task, const Answers& answers) {
  std::vector<Judgement> judgements;
  for (const Prediction& answer : answers) {
    judgements.push_back(task.Judge(answer.example, answer.text));
  }
  return judgements;
}

NamedValues MetricsOf(const Task& task, std::span<const Judgement> judgements,
                      const std::string& suffix) {
  const auto classes = static_cast<int>(task.traits().labels.size());
  NamedValues values;
  for (const std::string& name : task.traits().metrics) {
    for (NamedValue& value : FindMetric(name).Compute(judgements, classes)) {
      if (!suffix.empty()) value.name += "_" + suffix;
      values.push_back(std::move(value));
    }
  }
  return values;
}

StagedFile StagePredictions(const Path& directory, const std::string& name, const Task& task,
                            const Answers& answers) {
  std::string lines;
  for (const Prediction& answer : answers) lines += PredictionLine(task, answer) + "\n";
  CreateDirectoriesDurably(directory);
  return {directory / (name + ".jsonl"), lines};
}

TaskResults ResultsOf(std::span<const TaskData> tasks) {
  std::vector<std::string> names;
  std::set<std::string> not_averaged;
  for (const TaskData& task : tasks) {
    names.push_back(task.name());
    if (!task.task->traits().is_averaged) not_averaged.insert(task.name());
  }
  return TaskResults(std::move(names), std::move(not_averaged));
}

std::optional<EvaluationResult> TaskEvaluator::Evaluate(int64_t step,
                                                        const std::function<bool()>& stop) {
  result_ = {data_.name(), {}, is_saved_(step)};
  answers_.clear();
  std::vector<Judgement> judgements;
  for (const TaskSplitData& split : data_.validation) {
    std::optional<Answers> answers = answerer_.Answer(*data_.task, split.examples, stop);
    if (!answers) return std::nullopt;
    const std::vector<Judgement> judged = JudgementsOf(*data_.task, *answers);
    const NamedValues values = MetricsOf(*data_.task, judged, SuffixOf(*split.split));
    result_.values.insert(result_.values.end(), values.begin(), values.end());
    judgements.insert(judgements.end(), judged.begin(), judged.end());
    answers_[PredictionsName(data_.task->traits(), *split.split)] = std::move(*answers);
  }
  EvaluationResult result{{}, Summary(result_, judgements)};
  for (const NamedValue& value : result_.values) {
    result.values.push_back({MetricKey(data_.name(), value.name), value.value});
  }
  result.values.push_back({data_.name() + "_invalid", InvalidPercent(judgements)});
  if (!result_.is_saved) result.values.push_back({UnsavedKey(data_.name()), 1});
  return result;
}

}  // namespace syntra
