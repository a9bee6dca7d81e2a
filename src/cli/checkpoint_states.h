// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run, and which of them are intact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

struct CheckpointState {
  Path path;
  int64_t step = -1;  // -1 if it cannot be used
  double bytes = 0;
  std::string problem;  // "" if every file matches its digest
};

// Every checkpoint of a run directory, newest first, then the best ones of its tasks; or those of a
// directory of checkpoints, or a single one. Their contents are not read. Throws as OpenCheckpoint
// if there is none.
std::vector<Path> AllCheckpointsAt(const Path& place);

// Reads all of a checkpoint.
CheckpointState StateOfCheckpoint(const Path& path);

}  // namespace syntra
