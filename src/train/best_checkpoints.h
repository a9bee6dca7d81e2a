// SPDX-License-Identifier: Apache-2.0
// The best checkpoint of each task of a finetuning run, as `<run>/best/<task>/step-NNNNNNNNNN`:
// hard links to the run's checkpoint, which so outlives the pruning of older ones and takes no
// space while it is there anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace syntra {

// Rank 0 only, under the run's lock.
class BestCheckpoints {
 public:
  BestCheckpoints(Path root, Path checkpoints)
      : root_(std::move(root)), checkpoints_(std::move(checkpoints)) {}

  Path DirectoryOf(const std::string& task) const { return root_ / task; }
  // Puts the run's checkpoint of `step` in the place of the task's; files are copied where the file
  // system has no hard links. One of that step which is there already stays only if it is the same:
  // it may be damaged, or of an earlier run in this directory. Throws Error(kResources); then the
  // task's old one is still there.
  void Keep(const std::string& task, int64_t step);

 private:
  Path root_, checkpoints_;
};

}  // namespace syntra
