// SPDX-License-Identifier: Apache-2.0
// The common parts of tasks over a user's own files.
#pragma once

#include "data/record_reader.h"
#include "tasks/task.h"
#include "tasks/text_template.h"

namespace syntra {

// The format of a file. Throws Error(kConfig) if its name is not that of a table.
TableFormat OwnFormat(const Path& file, bool header);

// Throws Error(kConfig) unless there are two labels or more, all different, and no values for them
// or as many, all different; and as many labels as the metrics want.
void CheckLabels(const TaskTraits& traits, const std::vector<std::string>& values);

// A template with at least one field. Throws Error(kConfig).
TextTemplate OwnTemplate(const std::string& text);

// Metrics by name, `by_default` where there are none. Throws Error(kConfig) if one is unknown or
// reads something else.
std::vector<std::string> OwnMetrics(std::vector<std::string> names, const std::string& by_default,
                                    Metric::Reads reads);

// The files of a task's splits.
struct OwnSplits {
  std::vector<std::string> train, validation, test;
  size_t together = 1;  // TaskSplit::files_together
};

// All traits but labels and metrics. Throws Error(kConfig) if no file could have the name, or if
// there are no files to train or be judged on.
TaskTraits OwnTraits(const std::string& name, OwnSplits files);

// The traits of a task over tables. Throws Error(kConfig), also where OwnFormat does.
template <typename Config>
TaskTraits OwnTableTraits(const Config& own, const std::string& metric, Metric::Reads reads) {
  OwnSplits files{{own.train().begin(), own.train().end()},
                  {own.validation().begin(), own.validation().end()},
                  {own.test().begin(), own.test().end()}};
  for (const auto* split : {&files.train, &files.validation, &files.test}) {
    for (const std::string& file : *split) OwnFormat(file, own.header());
  }
  TaskTraits traits = OwnTraits(own.name(), std::move(files));
  traits.metrics = OwnMetrics({own.metric().begin(), own.metric().end()}, metric, reads);
  return traits;
}

}  // namespace syntra
