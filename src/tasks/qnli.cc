// SPDX-License-Identifier: Apache-2.0
// QNLI: does a sentence answer a question?
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_qnli(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "qnli",
                 .benchmark = "glue",
                 .splits = GlueSplits("QNLI"),
                 .labels = {"entailment", "not_entailment"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("qnli question: {question} sentence: {sentence}")});
}

}  // namespace syntra
