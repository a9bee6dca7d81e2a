// SPDX-License-Identifier: Apache-2.0
// Deleting what is no longer needed. What follows a save does not throw: once it is committed it
// stays a success.
#pragma once

#include <cstdint>

#include "base/file.h"
#include "checkpoint/save.h"

namespace syntra {

// Removes half-written and half-deleted checkpoints of processes that are gone, and this process's
// own.
void RemoveLeftovers(const Path& root) noexcept;

// A name beside a checkpoint's, which tells RemoveLeftovers of what and by which process it is.
Path OwnPath(std::string_view prefix, const Path& checkpoint);

// Of the checkpoints up to and including `newest_step` keeps what `options` say: the newest
// scheduled ones, so that requests to save or stop never cost one of them, the newest of the
// others, and milestones. Keeps all that are newer. A checkpoint leaves by rename, then is deleted.
void PruneCheckpoints(const Path& root, int64_t newest_step, const SaveOptions& options) noexcept;

// Removes the checkpoints of steps after `step`, the newest first. Throws Error(kResources).
void RemoveCheckpointsAfter(const Path& root, int64_t step);

// Removes a file or directory tree; logs a failure.
void RemoveQuietly(const Path& path) noexcept;

}  // namespace syntra
