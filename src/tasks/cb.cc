// SPDX-License-Identifier: Apache-2.0
// CB, the CommitmentBank: entailment of three kinds.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_cb(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "cb",
                 .benchmark = "superglue",
                 .splits = SuperGlueSplits("CB"),
                 .labels = {"entailment", "contradiction", "neutral"},
                 .metrics = {"macro_f1", "accuracy"}},
      LabelledRow{.input = TextTemplate("cb hypothesis: {hypothesis} premise: {premise}"),
                  .id = "idx"});
}

}  // namespace syntra
