// SPDX-License-Identifier: Apache-2.0
// QQP: do two questions ask the same?
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_qqp(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "qqp",
                 .benchmark = "glue",
                 .splits = GlueSplits("QQP"),
                 .labels = {"not_duplicate", "duplicate"},
                 .metrics = {"f1", "accuracy"}},
      LabelledRow{.input = TextTemplate("qqp question1: {question1} question2: {question2}"),
                  .label_values = {"0", "1"},
                  .label = "is_duplicate",
                  .id = "id"});
}

}  // namespace syntra
