// SPDX-License-Identifier: Apache-2.0
// WiC: has a word the same meaning in two sentences? Where it stands in them is not told, as in T5.
#include "tasks/label_task.h"

namespace syntra {

std::unique_ptr<Task> task_wic(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "wic",
                 .benchmark = "superglue",
                 .splits = SuperGlueSplits("WiC"),
                 .labels = {"False", "True"},
                 .metrics = {"accuracy"}},
      LabelledRow{
          .input = TextTemplate("wic sentence1: {sentence1} sentence2: {sentence2} word: {word}"),
          .label_values = {"false", "true"},
          .id = "idx"});
}

}  // namespace syntra
