// SPDX-License-Identifier: Apache-2.0
// The best checkpoint of each task of a finetuning run, as `<run>/best/<task>/step-NNNNNNNNNN`:
// hard links to the run's checkpoint. So it outlives the pruning of older ones, and takes no space
// as long as the run keeps it anyway.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"

namespace syntra {

// Makes `to`, which is named like a checkpoint, the same as the checkpoint `from`: by hard links,
// or by copies where the file system has none. If there is something of that name already, it stays
// only if it is the same: it may be damaged, or of another run. Throws Error(kResources) and
// changes nothing. Only one process may work in the directory that holds `to`.
void KeepCheckpoint(const Path& from, const Path& to);

// Used by rank 0 only, under the run's lock.
class BestCheckpoints {
 public:
  BestCheckpoints(Path root, Path checkpoints)
      : root_(std::move(root)), checkpoints_(std::move(checkpoints)) {}

  Path DirectoryOf(const std::string& task) const { return root_ / task; }
  // Replaces the task's checkpoint with the run's checkpoint of `step` (KeepCheckpoint). Throws
  // Error(kResources); then the task's old checkpoint is still there.
  void Keep(const std::string& task, int64_t step);

 private:
  Path root_, checkpoints_;
};

}  // namespace syntra
