// SPDX-License-Identifier: Apache-2.0
// What tasks over a user's own files have in common.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "data/record_reader.h"
#include "tasks/task.h"

namespace syntra {

// The format of a file. Throws Error(kConfig) if its name is of no table.
TableFormat OwnFormat(const Path& file, bool header);

// Throws Error(kConfig) unless there are two labels or more, all different, and no values for them
// or as many, all different.
void CheckLabels(const std::vector<std::string>& labels, const std::vector<std::string>& values);

// Those without labels. `metric`: where the configuration names none. Throws Error(kConfig) if
// there are no files to train or be judged on.
TaskTraits OwnTraits(const std::string& name, const std::vector<std::string>& train,
                     const std::vector<std::string>& validation,
                     const std::vector<std::string>& test, std::vector<std::string> metrics);

template <typename Config>
TaskTraits OwnTraits(const Config& own, const std::string& metric) {
  std::vector<std::string> metrics(own.metric().begin(), own.metric().end());
  if (metrics.empty()) metrics = {metric};
  return OwnTraits(own.name(), {own.train().begin(), own.train().end()},
                   {own.validation().begin(), own.validation().end()},
                   {own.test().begin(), own.test().end()}, std::move(metrics));
}

}  // namespace syntra
