// SPDX-License-Identifier: Apache-2.0
#include "tasks/own_files.h"

#include <set>

#include "base/text.h"

namespace syntra {
namespace {

bool AllDifferent(const std::vector<std::string>& texts) {
  return std::set(texts.begin(), texts.end()).size() == texts.size();
}

}  // namespace

TableFormat OwnFormat(const Path& file, bool header) {
  std::optional<TableFormat> format = TableFormatOf(file);
  if (!format) {
    Fail(ExitCode::kConfig,
         "{}: a task's files are named *.tsv, *.csv or *.jsonl, each also with .gz", file.string());
  }
  format->header = header;
  return *format;
}

void CheckLabels(const std::vector<std::string>& labels, const std::vector<std::string>& values) {
  if (labels.size() < 2 || !AllDifferent(labels)) {
    Fail(ExitCode::kConfig,
         "classification.label: give two labels or more, all different; there {} {}",
         labels.size() == 1 ? "is" : "are", labels.empty() ? "none" : Join(labels, ", "));
  }
  if (!values.empty() && (values.size() != labels.size() || !AllDifferent(values))) {
    Fail(ExitCode::kConfig,
         "classification.label_value: give one value for each of the {} labels, all different, or "
         "none; there {} {}",
         labels.size(), values.size() == 1 ? "is" : "are", Join(values, ", "));
  }
}

TaskTraits OwnTraits(const std::string& name, const std::vector<std::string>& train,
                     const std::vector<std::string>& validation,
                     const std::vector<std::string>& test, std::vector<std::string> metrics) {
  using Use = TaskSplit::Use;
  // The name becomes a file's.
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos) {
    Fail(ExitCode::kConfig, "a task's name \"{}\" must be one that a file can have",
         Printable(name));
  }
  if (train.empty() && validation.empty()) {
    Fail(ExitCode::kConfig, "task \"{}\": there is neither a train nor a validation file", name);
  }
  TaskTraits traits{.name = name, .benchmark = "", .splits = {}, .labels = {}, .metrics = metrics};
  const auto add = [&](const char* split, Use use, const std::vector<std::string>& files) {
    for (const std::string& file : files) OwnFormat(file, true);
    if (!files.empty()) traits.splits.push_back({.name = split, .use = use, .layouts = {files}});
  };
  add("train", Use::kTrain, train);
  add("validation", Use::kValidation, validation);
  add("test", Use::kTest, test);
  return traits;
}

}  // namespace syntra
