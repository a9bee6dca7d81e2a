// SPDX-License-Identifier: Apache-2.0
// MNLI: does a premise entail or contradict a hypothesis? GLUE's diagnostics (AX) are read as MNLI.
#include "tasks/label_task.h"

namespace syntra {
namespace {

std::vector<TaskSplit> MnliSplits() {
  using Use = TaskSplit::Use;
  return {{.name = "train", .use = Use::kTrain, .layouts = {{"MNLI/train.tsv"}}},
          {.name = "validation_matched",
           .use = Use::kValidation,
           .layouts = {{"MNLI/dev_matched.tsv"}}},
          {.name = "validation_mismatched",
           .use = Use::kValidation,
           .layouts = {{"MNLI/dev_mismatched.tsv"}}},
          {.name = "test_matched",
           .use = Use::kTest,
           .layouts = {{"MNLI/test_matched.tsv"}},
           .submission = "MNLI-m.tsv"},
          {.name = "test_mismatched",
           .use = Use::kTest,
           .layouts = {{"MNLI/test_mismatched.tsv"}},
           .submission = "MNLI-mm.tsv"},
          // By the names of the zip, of the server's download and of a common script.
          {.name = "ax",
           .use = Use::kTest,
           .layouts = {{"AX/diagnostic.tsv"}, {"AX/AX.tsv"}, {"diagnostic/diagnostic.tsv"}},
           .submission = "AX.tsv"}};
}

}  // namespace

std::unique_ptr<Task> task_mnli(const TaskConfig& /*config*/) {
  return std::make_unique<LabelTask>(
      TaskTraits{.name = "mnli",
                 .benchmark = "glue",
                 .splits = MnliSplits(),
                 .labels = {"entailment", "neutral", "contradiction"},
                 .metrics = {"accuracy"}},
      LabelledRow{.input = TextTemplate("mnli hypothesis: {sentence2} premise: {sentence1}"),
                  .label = "gold_label",
                  .left_out = "-"});  // where the annotators did not agree
}

}  // namespace syntra
