// SPDX-License-Identifier: Apache-2.0
// CoLA: is a sentence acceptable English? Its training and development files have no header row.
#include "tasks/label_task.h"

namespace syntra {
namespace {

class Cola : public LabelTask {
 public:
  Cola()
      : LabelTask(
            {.name = "cola",
             .benchmark = "glue",
             .splits = GlueSplits("CoLA"),
             .labels = {"unacceptable", "acceptable"},
             .metrics = {"matthews"}},
            {.input = TextTemplate("cola sentence: {sentence}"), .label_values = {"0", "1"}}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    if (split.use == TaskSplit::Use::kTest) return LabelTask::Read(split, files, policy, sink);
    // Source, label, the author's mark, sentence.
    TableFormat format = kTsv;
    format.header = false;
    format.columns = 4;
    LabelledRow numbered = row();
    numbered.input = TextTemplate("cola sentence: {4}");
    numbered.label = "2";
    return ReadTable(split, {files[0], format}, numbered, policy, sink);
  }
};

}  // namespace

std::unique_ptr<Task> task_cola(const TaskConfig& /*config*/) { return std::make_unique<Cola>(); }

}  // namespace syntra
