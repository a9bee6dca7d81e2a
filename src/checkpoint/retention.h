// SPDX-License-Identifier: Apache-2.0
// Deleting what is no longer needed. What follows a save does not throw: once it is committed it
// stays a success.
#pragma once

#include <cstdint>

#include "base/file.h"

namespace syntra {

// Removes half-written and half-deleted checkpoints of processes that are gone, and this process's
// own.
void RemoveLeftovers(const Path& root) noexcept;

// A name beside a checkpoint's, which tells RemoveLeftovers of what and by which process it is.
Path OwnPath(std::string_view prefix, const Path& checkpoint);

// Keeps the `keep` newest checkpoints up to and including `newest_step`, positive multiples of
// `milestone_every` (0: none), and all that are newer. A checkpoint leaves by rename, then is
// deleted.
void PruneCheckpoints(const Path& root, int64_t newest_step, int keep,
                      int64_t milestone_every) noexcept;

// Removes the checkpoints of steps after `step`, the newest first. Throws Error(kResources).
void RemoveCheckpointsAfter(const Path& root, int64_t step);

// Removes a file or directory tree; logs a failure.
void RemoveQuietly(const Path& path) noexcept;

}  // namespace syntra
