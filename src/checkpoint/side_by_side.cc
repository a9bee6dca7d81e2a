// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/side_by_side.h"

#include <algorithm>

#include "core/thread.h"

namespace syntra {
namespace {

constexpr int64_t kWorthThreads = int64_t{16} << 20;

}  // namespace

void RunSideBySide(std::span<const FileTask> tasks) {
  const bool all_small =
      std::ranges::all_of(tasks, [](const FileTask& task) { return task.bytes < kWorthThreads; });
  if (!all_small) return ParallelTasks(std::ssize(tasks), [&](int64_t i) { tasks[i].run(); });
  for (const FileTask& task : tasks) task.run();
}

}  // namespace syntra
