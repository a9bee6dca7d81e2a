// SPDX-License-Identifier: Apache-2.0
// WNLI: Winograd schemas as inference. T5 trains on WSC in its place; the format is that of its
// other pairs.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_wnli(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "wnli",
                 .benchmark = "glue",
                 .splits = GlueSplits("WNLI"),
                 .labels = {"not_entailment", "entailment"},
                 .metrics = {"accuracy"},
                 .is_averaged = false},
      LabelledRow{.input = TextTemplate("wnli sentence1: {sentence1} sentence2: {sentence2}"),
                  .label_values = {"0", "1"}});
}

}  // namespace syntra
