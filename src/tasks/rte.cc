// SPDX-License-Identifier: Apache-2.0
// RTE in GLUE's files: does a sentence entail another one?
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_rte(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "rte",
                 .benchmark = "glue",
                 .splits = GlueSplits("RTE"),
                 .labels = {"entailment", "not_entailment"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("rte sentence1: {sentence1} sentence2: {sentence2}")});
}

}  // namespace syntra
