// SPDX-License-Identifier: Apache-2.0
// Tasks whose rows are some fields of text and a label.
#pragma once

#include "tasks/rows.h"
#include "tasks/text_template.h"

namespace syntra {

// How a row reads.
struct LabelledRow {
  TextTemplate input;  // of the file's columns or JSON fields
  // The labels as the files write them, by class; empty: as the model writes them. In jsonl they
  // are JSON texts.
  std::vector<std::string> label_values{};
  std::string label = "label";    // column or JSON field
  std::string id = "index";       // likewise; without one the id is the row's number
  std::vector<Json> submitted{};  // as the server takes the labels; none: as the files write them
  std::string left_out{};         // a label whose rows are no examples: MNLI's "-"
  std::string advice{};           // what to do about a label that is none of them
};

class LabelTask : public Task {
 public:
  LabelTask(TaskTraits traits, LabelledRow row);

  // The only file is a table of the format that its name tells, else tab-separated.
  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override;

  const TextTemplate* input_template() const override { return &row_.input; }

 protected:
  // A file, without its fields, of another format or with other columns; returns as Read does.
  // `keep`: fields beyond those of `row`, and whether the row with them belongs to the split.
  struct Filter {
    std::vector<TableField> fields;
    std::function<bool(std::span<const std::optional<std::string>>)> keep;
  };
  int64_t ReadTable(const TaskSplit& split, RowFile file, const LabelledRow& row,
                    const BadRecordPolicy& policy, const Sink& sink,
                    const Filter& filter = {}) const;

  // The label of SubmittedClass.
  Json Submitted(const Prediction& prediction) const override;
  const LabelledRow& row() const { return row_; }

 private:
  LabelledRow row_;
};

// The splits of a SuperGLUE task: train.jsonl, val.jsonl, test.jsonl in `folder`. Only for tasks of
// the benchmark, as GlueSplits and Diagnostics: the test split has the file for the server.
std::vector<TaskSplit> SuperGlueSplits(const std::string& folder);
// The splits of a GLUE task: train.tsv, dev.tsv, test.tsv in `folder`.
std::vector<TaskSplit> GlueSplits(const std::string& folder);
// The split of one of SuperGLUE's diagnostics, which are only for evaluation: for example
// AX-b.jsonl in the folder AX-b.
std::vector<TaskSplit> Diagnostics(const std::string& folder);

}  // namespace syntra
