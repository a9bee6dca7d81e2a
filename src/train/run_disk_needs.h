// SPDX-License-Identifier: Apache-2.0
// The disk space that the files of a run's directory will take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/schema/config.pb.h"
#include "train/disk_needs.h"
#include "train/run_directory.h"

namespace syntra {

struct RunFiles {
  std::optional<int64_t> saved_step;  // of the newest checkpoint, if there is one
  double checkpoint_bytes = 0;        // of one checkpoint
  int64_t best_checkpoints = 0;       // one for each task that is judged
};

// The space that the files of a run need from where it stands to its end.
std::vector<DiskNeed> RunDiskNeeds(const Config& config, const RunDirectory& directory,
                                   const RunFiles& files);

}  // namespace syntra
