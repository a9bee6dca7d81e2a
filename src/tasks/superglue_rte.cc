// SPDX-License-Identifier: Apache-2.0
// RTE in SuperGLUE's files.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_superglue_rte(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "rte",
                 .benchmark = "superglue",
                 .splits = SuperGlueSplits("RTE"),
                 .labels = {"entailment", "not_entailment"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("rte hypothesis: {hypothesis} premise: {premise}"),
                  .id = "idx"});
}

}  // namespace syntra
