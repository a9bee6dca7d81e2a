// SPDX-License-Identifier: Apache-2.0
// Deletes what is no longer needed. The functions that run after a save do not throw: once a save
// is committed, it remains a success.
#pragma once

#include <cstdint>

#include "base/file.h"
#include "checkpoint/save.h"

namespace syntra {

// Removes half-written and half-deleted checkpoints of processes that are gone, and this process's
// own.
void RemoveLeftovers(const Path& root) noexcept;

// A name beside a checkpoint's. It tells RemoveLeftovers which checkpoint it belongs to and which
// process made it.
Path OwnPath(std::string_view prefix, const Path& checkpoint);

// Deletes the checkpoints up to and including `newest_step` that `options` do not keep. Kept are
// the newest scheduled ones (which a save on request or at a stop never displaces), the newest of
// the others, milestones, and all that are newer than `newest_step`. A checkpoint is renamed before
// it is deleted.
void PruneCheckpoints(const Path& root, int64_t newest_step, const SaveOptions& options) noexcept;

// Removes the checkpoints of steps after `step`, the newest first. Throws Error(kResources).
void RemoveCheckpointsAfter(const Path& root, int64_t step);

// Removes a file or directory tree; logs a failure.
void RemoveQuietly(const Path& path) noexcept;

}  // namespace syntra
