// SPDX-License-Identifier: Apache-2.0
#include "cli/task_lines.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/with_eos.h"

namespace syntra {
namespace {

const TextTemplate& TemplateOf(const Task& task) {
  if (!task.input_template()) {
    Fail(ExitCode::kConfig,
         "the inputs of {} are more than fields in a text, so lines cannot give them; write the "
         "examples as its validation file, and use syntra eval --predictions",
         task.traits().name);
  }
  return *task.input_template();
}

}  // namespace

ChosenTask ChooseTask(const Config& config, const std::string& name) {
  std::vector<std::unique_ptr<Task>> tasks = MakeTasks(config.data());
  if (tasks.empty()) {
    Fail(ExitCode::kConfig,
         "the checkpoint's configuration has no data.task, which says how the model reads a line "
         "and what its classes mean; give --set 'data.task={{...}}' with the tasks that it has "
         "learned");
  }
  std::vector<std::string> names;
  for (const std::unique_ptr<Task>& task : tasks) names.push_back(task->traits().name);
  const bool is_only = name.empty() && names.size() == 1;
  const auto found = is_only ? names.begin() : std::ranges::find(names, name);
  if (found == names.end()) {
    Fail(ExitCode::kConfig, "{}; choose one by --task: {}",
         name.empty() ? "the model has learned several tasks"
                      : fmt::format("the model has learned no task \"{}\"", name),
         Join(names, ", "));
  }
  const auto index = static_cast<size_t>(found - names.begin());
  return {std::move(tasks[index]), index};
}

void AddTaskOption(CLI::App& app, TaskLinesOptions* options) {
  app.add_option(
         "--task", options->task,
         "Read lines as the inputs of this task: its template or prefix is applied, its "
         "labels are used, and long inputs are cut as in training. A model of one task needs no "
         "name")
      ->type_name("NAME");
}

std::unique_ptr<Task> TaskOfLines(const Config& config, const TaskLinesOptions& options,
                                  const Communicator& ranks) {
  if (!options.task.empty()) return ChooseTask(config, options.task).task;
  std::vector<std::unique_ptr<Task>> tasks = MakeTasks(config.data());
  if (options.raw || tasks.size() != 1 || !tasks.front()->input_template()) return nullptr;
  if (ranks.rank() == 0) {
    Log().info("lines are inputs of the task {}; --raw takes them as they are",
               tasks.front()->traits().name);
  }
  return std::move(tasks.front());
}

TaskLines::TaskLines(const Task& task, const Tokenizer& tokenizer, int64_t input_length)
    : tokenizer_(tokenizer), template_(TemplateOf(task)), input_length_(input_length) {
  for (const std::string& field : template_.fields()) {
    const auto known = std::ranges::find(fields_, field);
    places_.push_back(known - fields_.begin());
    if (known == fields_.end()) fields_.push_back(field);
  }
}

std::string TaskLines::FieldsText() const { return Join(fields_, ", "); }

std::optional<std::string> TaskLines::Apply(const std::string& line, std::string* error) const {
  // The only field may have tabs in it.
  const std::vector<std::string> values =
      fields_.size() == 1 ? std::vector{line} : Split(line, '\t');
  if (values.size() == fields_.size()) {
    return template_.Fill([&](size_t i) { return std::string_view(values[places_[i]]); });
  }
  *error = fmt::format(
      "has {}, but the task's input has {}: {}; write them in this order with tabs between them",
      Counted(std::ssize(values), "field"), fields_.size(), FieldsText());
  return std::nullopt;
}

std::optional<std::vector<int32_t>> TaskLines::Read(const std::string& line, std::string* error) {
  const std::optional<std::string> text = Apply(line, error);
  if (!text) return std::nullopt;
  bool is_cut = false;
  std::vector<int32_t> ids = IdsWithEos(tokenizer_, *text, input_length_, &is_cut);
  cut_ += is_cut;
  return ids;
}

void TaskLines::WarnOfCut() const {
  if (cut_ == 0) return;
  Log().warn(
      "{} more tokens than the model reads (its data.input_length); what is beyond was left out, "
      "as in training",
      cut_ == 1 ? "1 line has" : WithThousands(cut_) + " lines have");
}

}  // namespace syntra
