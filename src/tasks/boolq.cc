// SPDX-License-Identifier: Apache-2.0
// BoolQ: yes-no questions about a passage.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_boolq(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "boolq",
                 .benchmark = "superglue",
                 .splits = SuperGlueSplits("BoolQ"),
                 .labels = {"False", "True"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("boolq passage: {passage} question: {question}"),
                  .label_values = {"false", "true"},
                  .id = "idx"});
}

}  // namespace syntra
