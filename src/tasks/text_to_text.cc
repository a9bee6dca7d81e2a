// SPDX-License-Identifier: Apache-2.0
// Text to text with a user's own records.
#include <algorithm>

#include "tasks/own_files.h"
#include "tasks/rows.h"
#include "tasks/text_template.h"

namespace syntra {
namespace {

class TextToText : public Task {
 public:
  explicit TextToText(const TextToTextTask& own)
      : Task(OwnTableTraits(own, "sequence_accuracy", Metric::Reads::kTexts)),
        input_(OwnTemplate(own.input())),
        target_(OwnTemplate(own.target())),
        header_(own.header()) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    const bool is_test = split.use == TaskSplit::Use::kTest;
    std::vector<TableField> fields;
    for (const std::string& name : input_.fields()) fields.push_back({name});
    for (const std::string& name : target_.fields()) fields.push_back({name, is_test});
    int64_t bad = 0, rows = 0;
    for (const Path& file : files) {
      bad += ReadRows(
          {file, OwnFormat(file, header_), fields, &rows}, policy,
          [&](const Row& row) { return std::vector{Parse(row, is_test)}; }, sink);
    }
    return bad;
  }

  const TextTemplate* input_template() const override { return &input_; }

 private:
  TaskExample Parse(const Row& row, bool is_test) const {
    const auto inputs = row.fields.first(input_.fields().size());
    const auto targets = row.fields.subspan(inputs.size());
    TaskExample example;
    example.inputs = input_.Fill([&](size_t i) { return std::string_view(*inputs[i]); });
    example.targets = kNoTarget;
    const auto is_there = [](const auto& field) { return field.has_value(); };
    // A table has no other way to say that there is no answer.
    const auto is_empty = [](const auto& field) { return field->empty(); };
    if (std::ranges::all_of(targets, is_there) &&
        !(is_test && std::ranges::all_of(targets, is_empty))) {
      example.targets = target_.Fill([&](size_t i) { return std::string_view(*targets[i]); });
      example.accepted_texts = {example.targets};
    }
    example.id = std::to_string(row.number);
    return example;
  }

  TextTemplate input_, target_;
  bool header_;
};

}  // namespace

std::unique_ptr<Task> task_text_to_text(const TaskConfig& config) {
  return std::make_unique<TextToText>(config.text_to_text());
}

}  // namespace syntra
