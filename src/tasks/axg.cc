// SPDX-License-Identifier: Apache-2.0
// AX-g: diagnostics that are read as RTE.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_axg(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "axg",
                 .benchmark = "superglue",
                 .splits = Diagnostics("AX-g"),
                 .labels = {"entailment", "not_entailment"},
                 .metrics = {"accuracy"},
                 .diagnoses = "rte"},
      LabelledRow{.input = TextTemplate("rte hypothesis: {hypothesis} premise: {premise}"),
                  .id = "idx"});
}

}  // namespace syntra
