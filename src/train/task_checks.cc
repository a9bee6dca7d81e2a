// SPDX-License-Identifier: Apache-2.0
#include "train/task_checks.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "train/held_out.h"
#include "train/task_data.h"
#include "train/task_labels.h"

namespace syntra {

std::string TaskChecks::CheckFiles() {
  tasks_ = MakeTasks(config_.data());
  CheckTasksCanStart(config_, tasks_);
  std::vector<std::string> names;
  names.reserve(tasks_.size());
  for (const std::unique_ptr<Task>& task : tasks_) names.push_back(task->traits().name);
  return "all there for " + Join(names, ", ");
}

CheckResult TaskChecks::CheckHeldOut() const {
  std::vector<std::string> all;
  for (const std::unique_ptr<Task>& task : tasks_) {
    std::vector<Path> training, validation;
    for (const TaskSplit& split : task->traits().splits) {
      if (split.use == TaskSplit::Use::kTest) continue;
      auto& files = split.use == TaskSplit::Use::kTrain ? training : validation;
      std::ranges::move(FilesOf(split, config_.data().directory()), std::back_inserter(files));
    }
    const std::string both = FilesNotHeldOut(training, validation);
    if (!both.empty()) all.push_back(fmt::format("task \"{}\": {}", task->traits().name, both));
  }
  if (all.empty()) return "no validation file is a training file";
  return {Join(all, "; "), Finding::State::kWarning};
}

std::string TaskChecks::CheckTestFiles() const {
  const TaskFolder folder = TaskFolderOf(config_.data());
  std::vector<std::string> names;
  for (const std::unique_ptr<Task>& task : tasks_) {
    for (const TaskSplit* split : TestSplits(*task, folder.directory)) {
      CheckExamples(*task, *split, folder);
      names.push_back(PredictionsName(task->traits(), *split));
    }
  }
  return names.empty() ? "none" : "every file has examples: " + Join(names, ", ");
}

CheckResult TaskChecks::CheckLabels(const Tokenizer& tokenizer) const {
  const std::vector<std::string> problems = CheckTaskLabels(config_, tokenizer, tasks_);
  if (problems.empty()) return "the model can give each";
  return {Join(problems, "; "), Finding::State::kWarning};
}

int64_t TaskChecks::judged() const {
  return std::ranges::count_if(tasks_, [](const std::unique_ptr<Task>& task) {
    return std::ranges::count(task->traits().splits, TaskSplit::Use::kValidation, &TaskSplit::use) >
           0;
  });
}

}  // namespace syntra
