// SPDX-License-Identifier: Apache-2.0
// What lines of text ask of a model that writes text, for `generate` and `score`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/checkpoint_options.h"
#include "cli/task_lines.h"
#include "decode/batch_decoder.h"

namespace syntra {

class RequestReader {
 public:
  // `task`: whose inputs the lines give, or null. Model and task must outlive it. Throws
  // Error(kConfig) if an input of the task is more than fields in a text.
  RequestReader(const LoadedModel& model, const Task* task);

  const DecodeSettings& settings() const { return settings_; }
  // Null: lines have no task.
  const TaskLines* task_lines() const { return task_lines_ ? &*task_lines_ : nullptr; }
  // Whether lines are beginnings of texts, which the model goes on with; else they may have gaps.
  bool goes_on() const { return goes_on_; }
  // How many tokens a target of that input may have.
  int64_t RoomAfter(std::span<const int32_t> input) const;

  // The request of a line; nothing for a bad line, of which `error` says what is wrong.
  std::optional<DecodeRequest> Read(const std::string& line, std::string* error);
  // The ids of a target of that line, of which `input` are those of the request; nothing for a bad
  // one. Targets of tasks are plain text, others may have sentinels. Where the model goes on with
  // texts, the target follows the line as it is; else it has an EOS.
  std::optional<std::vector<int32_t>> ReadTarget(const std::string& line,
                                                 std::span<const int32_t> input,
                                                 const std::string& target, std::string* error);

  // Warns of the inputs of a task that were cut, and of targets that go on with the last word of
  // their lines, where a space may be missing.
  void Warn() const;

 private:
  const Tokenizer& tokenizer_;
  DecodeSettings settings_;
  std::optional<TaskLines> task_lines_;
  bool goes_on_;
  std::string limit_;   // the fields that say how long a row with inputs is
  int64_t joined_ = 0;  // targets that go on with a word
};

}  // namespace syntra
