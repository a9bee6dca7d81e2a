// SPDX-License-Identifier: Apache-2.0
#include "train/task_classes.h"

#include <algorithm>

#include "base/error.h"
#include "model/architecture.h"

namespace syntra {
namespace {

void CheckHasLabels(const TaskTraits& task, const ModelConfig& model) {
  if (!task.labels.empty()) return;
  Fail(ExitCode::kConfig,
       "the answers to {} are free text, which a model of architecture {} cannot give; leave the "
       "task out",
       task.name, NameOf(model.architecture()));
}

}  // namespace

std::vector<int32_t> FirstClassIds(const ModelConfig& model,
                                   std::span<const std::unique_ptr<Task>> tasks) {
  if (ArchitectureOf(model).outputs() != Outputs::kClasses) return {};
  std::vector<std::pair<const TaskTraits*, int32_t>> first;  // of each task that is no diagnosis
  int32_t next = 1;
  for (const std::unique_ptr<Task>& task : tasks) {
    const TaskTraits& traits = task->traits();
    CheckHasLabels(traits, model);
    if (!traits.diagnoses.empty()) continue;
    first.emplace_back(&traits, next);
    next += static_cast<int32_t>(traits.labels.size());
  }
  if (next - 1 != model.classifier().classes()) {
    Fail(ExitCode::kConfig,
         "model.classifier.classes is {}, but the tasks have {} labels; set "
         "model.classifier.classes: {}",
         model.classifier().classes(), next - 1, next - 1);
  }
  std::vector<int32_t> ids;
  for (const std::unique_ptr<Task>& task : tasks) {
    const TaskTraits& traits = task->traits();
    const auto known = std::ranges::find_if(
        first, [&](const auto& owner) { return IsAnsweredBy(traits, *owner.first); });
    if (known == first.end()) {
      Fail(ExitCode::kConfig, "{} has the classes of {} of {}; list that task in data.task as well",
           traits.name, traits.diagnoses, traits.benchmark);
    }
    ids.push_back(known->second);
  }
  return ids;
}

}  // namespace syntra
