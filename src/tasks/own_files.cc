// SPDX-License-Identifier: Apache-2.0
#include "tasks/own_files.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

bool AllDifferent(const std::vector<std::string>& texts) {
  return std::set(texts.begin(), texts.end()).size() == texts.size();
}

// With what is added to the names of files and, while they are written, of temporary ones, this is
// less than the 255 bytes that file systems allow.
constexpr size_t kLongestName = 200;

bool CanNameFiles(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && !name.starts_with('.') &&
         name.find('/') == std::string::npos && Printable(name) == name;
}

}  // namespace

TableFormat OwnFormat(const Path& file, bool header) {
  std::optional<TableFormat> format = TableFormatOf(file);
  if (!format) {
    Fail(ExitCode::kConfig,
         "\"{}\": a task's files are named *.tsv, *.csv or *.jsonl, each also with .gz",
         file.string());
  }
  format->header = header;
  format->advice =
      "; of a file without a header row, set header: false and call the columns 1, 2...";
  return *format;
}

void CheckLabels(const TaskTraits& traits, const std::vector<std::string>& values) {
  const std::vector<std::string>& labels = traits.labels;
  if (labels.size() < 2 || !AllDifferent(labels)) {
    Fail(ExitCode::kConfig, "task \"{}\": label: give two labels or more, all different; found {}",
         traits.name, labels.empty() ? "none" : Join(labels, ", "));
  }
  if (std::ranges::count(labels, "") > 0) {
    Fail(ExitCode::kConfig, "task \"{}\": label: a label must not be empty", traits.name);
  }
  if (!values.empty() && (values.size() != labels.size() || !AllDifferent(values))) {
    Fail(ExitCode::kConfig,
         "task \"{}\": label_value: give one value for each of the {} labels, all different, or "
         "none; found {}",
         traits.name, labels.size(), Join(values, ", "));
  }
  for (const std::string& name : traits.metrics) {
    const int classes = FindMetric(name).classes;
    if (classes == 0 || classes == static_cast<int>(labels.size())) continue;
    Fail(ExitCode::kConfig, "task \"{}\": metric: {} is for {} labels, but there are {}",
         traits.name, name, classes, labels.size());
  }
}

TextTemplate OwnTemplate(const std::string& text) {
  TextTemplate form(text);
  if (form.fields().empty()) {
    Fail(ExitCode::kConfig,
         "\"{}\" has no field of a file in it; write a column's or JSON field's name in braces, "
         "such as {{text}}",
         text);
  }
  return form;
}

std::vector<std::string> OwnMetrics(std::vector<std::string> names, const std::string& by_default,
                                    Metric::Reads reads) {
  if (names.empty()) names = {by_default};
  if (!AllDifferent(names)) {
    Fail(ExitCode::kConfig, "metric: {}: name each once", Join(names, ", "));
  }
  for (const std::string& name : names) {
    if (FindMetric(name).reads == reads) continue;
    std::vector<std::string> possible;
    for (const std::string& other : MetricNames()) {
      if (FindMetric(other).reads == reads) possible.push_back(other);
    }
    Fail(ExitCode::kConfig, "metric: \"{}\" does not judge such answers; use {}", name,
         Join(possible, ", "));
  }
  return names;
}

TaskTraits OwnTraits(const std::string& name, OwnSplits files) {
  using Use = TaskSplit::Use;
  if (!CanNameFiles(name)) {
    Fail(
        ExitCode::kConfig,
        "a task's name \"{}\" must be one that a file can have: UTF-8 of at most {} bytes, without "
        "slashes and control characters, and with no dot at its beginning",
        Printable(name, 80), kLongestName);
  }
  if (files.train.empty() && files.validation.empty()) {
    Fail(ExitCode::kConfig, "task \"{}\": there is neither a train nor a validation file", name);
  }
  TaskTraits traits{.name = name, .benchmark = "", .splits = {}, .labels = {}, .metrics = {}};
  const auto add = [&](const char* split, Use use, std::vector<std::string> paths) {
    if (paths.empty()) return;
    traits.splits.push_back({.name = split,
                             .use = use,
                             .layouts = {std::move(paths)},
                             .files_together = files.together,
                             .is_named = true});
  };
  add("train", Use::kTrain, std::move(files.train));
  add("validation", Use::kValidation, std::move(files.validation));
  add("test", Use::kTest, std::move(files.test));
  return traits;
}

}  // namespace syntra
