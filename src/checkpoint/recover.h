// SPDX-License-Identifier: Apache-2.0
// Finding the checkpoint to continue from, or to use.
#pragma once

#include <optional>
#include <vector>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/read.h"

namespace syntra {

enum class Recovery {
  kSetAside,  // the owner of the run: damaged checkpoints that were passed over are renamed
              // .bad-..., and what interrupted saves left is cleared away first
  kReadOnly,  // everyone else: nothing is changed
};

// Opens the newest checkpoint in `root` that verifies completely; nullopt if there has never been
// one. Newer ones that fail are logged with file and reason. If there are checkpoints but none is
// usable, throws an error with every reason and leaves all in place, so a run never starts from
// scratch by itself: Error(kResources) if none of them is known to be damaged, else
// Error(kCheckpoint). A checkpoint of a newer format version also throws rather than being skipped.
// With kReadOnly so does one that cannot be read but may be good: without it a run would train the
// same steps again, but a command would use another model.
std::optional<Checkpoint> FindNewestValid(const Path& root, Recovery mode);

// A checkpoint as its manifest describes it; whether its tensors are sound is not looked at.
struct CheckpointSummary {
  Path path;
  CheckpointInfo info;
};

// The newest checkpoint in `root` whose manifest can be read; nullopt if there is no checkpoint. If
// there are some and none can be read, throws as FindNewestValid. Changes nothing.
std::optional<CheckpointSummary> NewestSummary(const Path& root);

// The step of the checkpoint to which a run that has diverged goes back: the newest valid one from
// before `first_bad_step` was trained, or else the oldest valid one. Checkpoints that are not
// scheduled count only if no other is valid, so that it does not matter where a run was stopped.
// For the owner of the run: damaged ones that were passed over are renamed .bad-... Throws
// Error(kCheckpoint) if none is valid, and leaves all in place.
int64_t StepToGoBackTo(const Path& root, int64_t first_bad_step, const SaveSchedule& schedule = {});

// The newest valid checkpoint below `path`, which a user named: a checkpoint (its MANIFEST, its
// tensors.h5 and a link to it stand for it), a run directory, or a directory of checkpoints. Throws
// Error(kCheckpoint) if there is none, Error(kConfig) if there is nothing at all of that name.
// Changes nothing.
Checkpoint OpenNewest(const Path& path);
// The same for a place in a run directory. That may come from anyone, so a link in place of a
// checkpoint is refused.
Checkpoint OpenNewestIn(const Path& path);

// The checkpoints among which OpenNewest chooses, newest first. Their contents are not read.
std::vector<Path> CheckpointsAt(const Path& path);

// Whether `path` is a run directory or one with checkpoints, as those of the best ones.
bool HoldsCheckpoints(const Path& path);

// The checkpoint that holds the file, if `path` is its MANIFEST or its tensors.h5; else `path`.
Path WithoutCheckpointFile(const Path& path);

}  // namespace syntra
