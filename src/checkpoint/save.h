// SPDX-License-Identifier: Apache-2.0
// Saving a checkpoint so that a crash at any moment leaves the old state or the new one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tensor_record.h"

namespace syntra {

struct SaveOptions {
  int keep = 2;                 // newest scheduled checkpoints kept; at least 2
  int64_t milestone_every = 0;  // positive multiples of this step are kept for good; 0: none
  SaveSchedule schedule = {};   // the newest checkpoint outside it is kept, too
  // Bound of a shard; a larger tensor has a shard of its own.
  int64_t shard_bytes = int64_t{512} << 20;
  bool verify = true;  // read everything back before committing
  bool log = true;     // whether to log the checkpoint's path, and how long the save took
  // Called when all is written, before the checkpoint gets its name. An exception that it throws
  // ends the save.
  std::function<void()> before_commit = {};
};

// Commits root/step-NNNNNNNNNN with the tensors, and `files` beside them, creating `root` if
// needed; a checkpoint of the same step is replaced in one step. One save at a time may run on a
// root. Throws Error(kResources) when the disk or memory fails, Error(kCheckpoint) when what was
// written does not read back or a name cannot be stored; then older checkpoints are untouched and
// the save may be tried again.
void SaveCheckpoint(const Path& root, const CheckpointInfo& info,
                    std::span<const TensorRecord> tensors, const SaveOptions& options = {},
                    std::span<const FileRecord> files = {});

}  // namespace syntra
