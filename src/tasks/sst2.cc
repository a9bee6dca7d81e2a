// SPDX-License-Identifier: Apache-2.0
// SST-2: is a film review positive?
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_sst2(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "sst2",
                 .benchmark = "glue",
                 .splits = GlueSplits("SST-2"),
                 .labels = {"negative", "positive"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("sst2 sentence: {sentence}"), .label_values = {"0", "1"}});
}

}  // namespace syntra
