// SPDX-License-Identifier: Apache-2.0
#include "tasks/label_task.h"

#include <algorithm>

namespace syntra {

LabelTask::LabelTask(TaskTraits task_traits, LabelledRow row)
    : Task(std::move(task_traits)), row_(std::move(row)) {
  if (row_.label_values.empty()) row_.label_values = traits().labels;
  if (row_.submitted.empty()) {
    row_.submitted.assign(row_.label_values.begin(), row_.label_values.end());
  }
  SYNTRA_CHECK(row_.label_values.size() == traits().labels.size() &&
               row_.submitted.size() == traits().labels.size());
}

Json LabelTask::Submitted(const Prediction& prediction) const {
  return row_.submitted[SubmittedClass(prediction.text)];
}

int64_t LabelTask::Read(const TaskSplit& split, std::span<const Path> files,
                        const BadRecordPolicy& policy, const Sink& sink) const {
  const TableFormat format = TableFormatOf(files[0]).value_or(kTsv);
  return ReadTable(split, {files[0], format}, row_, policy, sink);
}

int64_t LabelTask::ReadTable(const TaskSplit& split, RowFile file, const LabelledRow& row,
                             const BadRecordPolicy& policy, const Sink& sink,
                             const Filter& filter) const {
  const bool is_test = split.use == TaskSplit::Use::kTest, has_id = !row.id.empty();
  const size_t inputs = row.input.fields().size();
  for (const std::string& name : row.input.fields()) file.fields.push_back({name});
  file.fields.push_back({row.label, /*optional=*/is_test});
  if (has_id) file.fields.push_back({row.id, /*optional=*/true});
  const size_t own = file.fields.size();
  std::ranges::copy(filter.fields, std::back_inserter(file.fields));
  const RowParser parse = [&](const Row& read) -> std::vector<TaskExample> {
    if (filter.keep && !filter.keep(read.fields.subspan(own))) return {};
    TaskExample example;
    example.inputs = row.input.Fill([&](size_t i) { return std::string_view(*read.fields[i]); });
    example.targets = kNoTarget;
    if (const auto label = LabelOf(read.fields[inputs], split.use, row.label_values)) {
      if (!row.left_out.empty() && *label == row.left_out) return {};
      const int index = IndexOf(*label, row_.label_values, row.label, row.advice);
      example.expected = index;
      example.targets = traits().labels[index];
    }
    example.id = IdOf(has_id ? read.fields[inputs + 1] : std::nullopt, read);
    return {std::move(example)};
  };
  return ReadRows(file, policy, parse, sink);
}

namespace {

std::vector<TaskSplit> Splits(const std::string& folder, const std::string& validation,
                              const std::string& extension, const std::string& submission) {
  const auto file = [&](const std::string& name) {
    return std::vector<std::vector<std::string>>{{folder + "/" + name + extension}};
  };
  return {{.name = "train", .use = TaskSplit::Use::kTrain, .layouts = file("train")},
          {.name = "validation", .use = TaskSplit::Use::kValidation, .layouts = file(validation)},
          {.name = "test",
           .use = TaskSplit::Use::kTest,
           .layouts = file("test"),
           .submission = submission}};
}

}  // namespace

std::vector<TaskSplit> SuperGlueSplits(const std::string& folder) {
  return Splits(folder, "val", ".jsonl", folder + ".jsonl");
}

std::vector<TaskSplit> GlueSplits(const std::string& folder) {
  return Splits(folder, "dev", ".tsv", folder + ".tsv");
}

std::vector<TaskSplit> Diagnostics(const std::string& folder) {
  const std::string file = folder + ".jsonl";
  return {{.name = "test",
           .use = TaskSplit::Use::kTest,
           .layouts = {{folder + "/" + file}},
           .submission = file}};
}

}  // namespace syntra
