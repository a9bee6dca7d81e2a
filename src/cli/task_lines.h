// SPDX-License-Identifier: Apache-2.0
// Lines of text as a task's files would give them to a model.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "data/tokenizer.h"
#include "dist/communicator.h"
#include "tasks/task.h"
#include "tasks/text_template.h"

namespace syntra {

// The task `name` of a configuration; if that is empty, its only one. Throws Error(kConfig) if it
// is not clear which one is meant.
struct ChosenTask {
  std::unique_ptr<Task> task;
  size_t index = 0;  // among the tasks of the configuration
};
ChosenTask ChooseTask(const Config& config, const std::string& name);

// The options that say whether lines of standard input are inputs of a task, and of which.
struct TaskLinesOptions {
  std::string task;  // empty: the task of the model, if it has one task
  bool raw = false;  // lines are inputs of no task, unless one is named
};
// Adds --task.
void AddTaskOption(CLI::App& app, TaskLinesOptions* options);
// The task that is named or, unless --raw says how lines are read, the only one that the model has
// learned, which is logged; else null.
std::unique_ptr<Task> TaskOfLines(const Config& config, const TaskLinesOptions& options,
                                  const Communicator& ranks);

// Makes inputs of lines, and counts those that are longer than what the model reads.
class TaskLines {
 public:
  // The task must outlive it. Throws Error(kConfig) if its inputs are more than fields in a text.
  TaskLines(const Task& task, const Tokenizer& tokenizer, int64_t input_length);

  // How many fields, with tabs between them, are an input.
  size_t field_count() const { return fields_.size(); }
  // "hypothesis, premise"
  std::string FieldsText() const;

  // The ids of the input that a line stands for, cut to the input length. The line has the fields
  // of the task's input, with tabs between them; nothing if it has other ones, and `error` says so.
  std::optional<std::vector<int32_t>> Read(const std::string& line, std::string* error);

  // Warns of the lines that were cut, if there were any.
  void WarnOfCut() const;

 private:
  std::optional<std::string> Apply(const std::string& line, std::string* error) const;

  const Tokenizer& tokenizer_;
  const TextTemplate& template_;
  std::vector<std::string> fields_;  // each once, in the template's order
  std::vector<size_t> places_;       // for each of the template's fields, which of `fields_` it is
  int64_t input_length_, cut_ = 0;
};

}  // namespace syntra
