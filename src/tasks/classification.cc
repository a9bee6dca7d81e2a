// SPDX-License-Identifier: Apache-2.0
// Classification of a user's own records.
#include "tasks/label_task.h"
#include "tasks/own_files.h"

namespace syntra {
namespace {

class Classification : public LabelTask {
 public:
  Classification(TaskTraits traits, LabelledRow row, bool header)
      : LabelTask(std::move(traits), std::move(row)), header_(header) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    int64_t bad = 0, rows = 0;
    for (const Path& file : files) {
      const TableFormat format = OwnFormat(file, header_);
      bad += ReadTable(split, {.path = file, .format = format, .rows = &rows}, row(), policy, sink);
    }
    return bad;
  }

 private:
  bool header_;
};

}  // namespace

std::unique_ptr<Task> task_classification(const TaskConfig& config) {
  const ClassificationTask& own = config.classification();
  TaskTraits traits = OwnTableTraits(own, "accuracy", Metric::Reads::kLabels);
  traits.labels.assign(own.label().begin(), own.label().end());
  LabelledRow row{.input = OwnTemplate(own.input()),
                  .label_values = {own.label_value().begin(), own.label_value().end()},
                  .label = own.label_field(),
                  .id = ""};
  CheckLabels(traits, row.label_values);
  if (row.label_values.empty()) {
    row.advice = "; if files write the labels in another way, list what they write in label_value";
  }
  return std::make_unique<Classification>(std::move(traits), std::move(row), own.header());
}

}  // namespace syntra
