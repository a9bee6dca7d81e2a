// SPDX-License-Identifier: Apache-2.0
// AX-b: diagnostics that are read as RTE.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_axb(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "axb",
                 .benchmark = "superglue",
                 .splits = Diagnostics("AX-b"),
                 .labels = {"entailment", "not_entailment"},
                 .metrics = {"matthews"},
                 .diagnoses = "rte"},
      LabelledRow{.input = TextTemplate("rte hypothesis: {sentence2} premise: {sentence1}"),
                  .id = "idx"});
}

}  // namespace syntra
