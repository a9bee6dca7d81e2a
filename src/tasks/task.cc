// SPDX-License-Identifier: Apache-2.0
#include "tasks/task.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/name_table.h"
#include "base/text.h"
#include "configs/schema/kind_of.h"

namespace syntra {

#define SYNTRA_TASK(kind) std::unique_ptr<Task> task_##kind(const TaskConfig& config);
#include "tasks/tasks.def"
#undef SYNTRA_TASK

namespace {

using Make = std::unique_ptr<Task> (*)(const TaskConfig&);

const NameTable<Make>& Tasks() {
  static const NameTable<Make> table = [] {
    NameTable<Make> tasks("task");
#define SYNTRA_TASK(kind) tasks.Add(#kind, &task_##kind);
#include "tasks/tasks.def"
#undef SYNTRA_TASK
    return tasks;
  }();
  return table;
}

std::vector<std::string> PredictionsOf(const TaskTraits& task) {
  std::vector<std::string> names;
  for (const TaskSplit& split : task.splits) {
    if (split.use != TaskSplit::Use::kTrain) names.push_back(PredictionsName(task, split));
  }
  return names;
}

// Results and predictions have one place in a run directory for each name.
void RequireOwnPlaces(const TaskTraits& task, const TaskTraits& other) {
  if (task.name == other.name) {
    Fail(ExitCode::kConfig,
         "there are two tasks called \"{}\", but results have one place for them; remove one",
         task.name);
  }
  const std::vector<std::string> taken = PredictionsOf(other);
  for (const std::string& name : PredictionsOf(task)) {
    if (std::ranges::find(taken, name) == taken.end()) continue;
    Fail(ExitCode::kConfig,
         "the tasks \"{}\" and \"{}\" would both write predictions/{}.jsonl; give one of them "
         "another name",
         other.name, task.name, name);
  }
}

}  // namespace

std::string SuffixOf(const TaskSplit& split) {
  const size_t end = split.name.find('_');
  return end == std::string::npos ? "" : split.name.substr(end + 1);
}

const TaskSplit* TrainingSplitOf(const TaskTraits& task) {
  const TaskSplit* found = nullptr;
  for (const TaskSplit& split : task.splits) {
    if (split.use != TaskSplit::Use::kTrain) continue;
    SYNTRA_CHECK(!found, "{} has two training splits, {} and {}", task.name, found->name,
                 split.name);
    found = &split;
  }
  return found;
}

bool IsAnsweredBy(const TaskTraits& task, const TaskTraits& owner) {
  const std::string& name = task.diagnoses.empty() ? task.name : task.diagnoses;
  return owner.name == name && owner.benchmark == task.benchmark;
}

std::string PredictionsName(const TaskTraits& task, const TaskSplit& split) {
  const bool is_test = split.use == TaskSplit::Use::kTest;
  const std::string part = is_test ? split.name : SuffixOf(split);
  return part.empty() ? task.name : task.name + "_" + part;
}

Judgement Task::Judge(const TaskExample& example, std::string_view text) const {
  return {.expected = example.expected,
          // No free text is invalid.
          .predicted = traits_.labels.empty() ? 0.0 : ClassOf(text),
          .predicted_text = std::string(text),
          .accepted_texts = example.accepted_texts,
          .group = example.group};
}

bool Task::IsSettled(std::string_view begun) const {
  const auto begins = [&](const std::string& label) { return label.starts_with(begun); };
  return !traits_.labels.empty() && std::ranges::none_of(traits_.labels, begins);
}

std::string Task::Submission(std::span<const Prediction> predictions) const {
  const bool as_json = traits_.benchmark == "superglue";
  std::string lines = as_json ? "" : "index\tprediction\n";
  for (const Prediction& prediction : predictions) {
    const std::string& id = prediction.example.id;
    const Json answer = Submitted(prediction);
    int64_t number = 0;
    if (as_json) {
      const Json idx = ParseInt64(id, &number) ? Json(number) : Json(id);
      lines += JsonText({{"idx", idx}, {"label", answer}}) + "\n";
    } else {
      lines +=
          id + "\t" + (answer.is_string() ? answer.get<std::string>() : JsonText(answer)) + "\n";
    }
  }
  return lines;
}

Json Task::Submitted(const Prediction& prediction) const { return prediction.text; }

int Task::ClassOf(std::string_view text) const {
  const auto found = std::ranges::find(traits_.labels, text);
  return found == traits_.labels.end() ? -1 : static_cast<int>(found - traits_.labels.begin());
}

int Task::SubmittedClass(std::string_view text) const { return std::max(0, ClassOf(text)); }

std::unique_ptr<Task> MakeTask(const TaskConfig& config) {
  const std::string kind = KindOf(config);
  if (kind.empty()) {
    Fail(ExitCode::kConfig, "data.task names no kind; write e.g. task {{ cola {{}} }}");
  }
  return Tasks().Get(kind)(config);
}

std::vector<std::unique_ptr<Task>> MakeTasks(const DataConfig& config) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < config.task_size(); ++i) {
    const ErrorContext context([&] { return fmt::format("reading data.task[{}]", i); });
    std::unique_ptr<Task> task = MakeTask(config.task(i));
    for (const auto& other : tasks) RequireOwnPlaces(task->traits(), other->traits());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::string MajorityAnswer(const Task& task, std::span<const TaskExample> train) {
  const std::vector<std::string>& labels = task.traits().labels;
  const bool is_free_text = labels.empty() && !train.empty() && !train[0].accepted_texts.empty();
  if (is_free_text) return "";
  std::map<std::string, int64_t> counts;
  for (const TaskExample& example : train) {
    if (example.targets != kNoTarget) ++counts[example.targets];
  }
  std::string answer;
  int64_t most = 0;
  const auto consider = [&](const std::string& text) {
    if (counts[text] > most) answer = text, most = counts[text];
  };
  for (const std::string& label : labels) consider(label);
  if (labels.empty()) {
    for (const auto& entry : std::map(counts)) consider(entry.first);
  }
  return answer;
}

std::vector<std::string> LabelsWithoutExamples(const Task& task,
                                               std::span<const TaskExample> train) {
  std::vector<std::string> labels = task.traits().labels;
  std::erase_if(labels, [&](const std::string& label) {
    return std::ranges::find(train, label, &TaskExample::targets) != train.end();
  });
  return labels;
}

std::string PredictionLine(const Task& task, const Prediction& prediction) {
  const TaskExample& example = prediction.example;
  const Judgement judgement = task.Judge(example, prediction.text);
  Json line{{"id", example.id},
            {"input", example.inputs},
            {"target", example.targets},
            {"prediction", prediction.text}};
  const auto reads_texts = [](const std::string& metric) {
    return FindMetric(metric).reads == Metric::Reads::kTexts;
  };
  if (!std::ranges::all_of(task.traits().metrics, reads_texts)) {
    line["expected"] = judgement.expected;
    line["predicted"] = judgement.predicted;
  }
  if (!judgement.accepted_texts.empty()) line["accepted"] = judgement.accepted_texts;
  if (!judgement.group.empty()) line["group"] = judgement.group;
  return JsonText(line);
}

}  // namespace syntra
