// SPDX-License-Identifier: Apache-2.0
// COPA: which of two sentences is the cause or effect of a third?
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_copa(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "copa",
                 .benchmark = "superglue",
                 .splits = SuperGlueSplits("COPA"),
                 .labels = {"choice1", "choice2"},
                 .metrics = {"accuracy"}},
      LabelledRow{
          .input = TextTemplate(
              "copa choice1: {choice1} choice2: {choice2} premise: {premise} question: {question}"),
          .label_values = {"0", "1"},
          .id = "idx",
          .submitted = {0, 1}});
}

}  // namespace syntra
