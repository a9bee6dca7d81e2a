// SPDX-License-Identifier: Apache-2.0
// Work on several files of a checkpoint at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace syntra {

struct FileTask {
  int64_t bytes;  // how many the task reads or writes
  std::function<void()> run;
};

// Runs all tasks. The process's threads take one task each, unless all are so small that starting
// threads could take longer. Throws what the first task that fails throws.
void RunSideBySide(std::span<const FileTask> tasks);

}  // namespace syntra
