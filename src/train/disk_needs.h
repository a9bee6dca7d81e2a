// SPDX-License-Identifier: Apache-2.0
// Checks whether files can be written, and fit onto their file systems; the space that the files of
// a run's directory will take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "configs/schema/config.pb.h"
#include "train/run_directory.h"

namespace syntra {

struct DiskNeed {
  std::string what;           // "3 checkpoints"
  Path place;                 // the directory, which may not exist yet
  double soon = 0;            // bytes without which the run fails soon
  double later = 0;           // bytes that come with time
  bool is_estimated = false;  // messages say "about"
};

// Throws Error(kResources) unless `path` is a directory that can be written, or can be made.
// `field` names it in the configuration.
void CheckWritable(const Path& path, const char* field);

struct DiskFinding {
  // "/data: 1.2 GiB free, about 310.0 MiB needed (3 checkpoints 300.0 MiB, metrics about 10.0
  // MiB)", one for each file system
  std::string text;
  bool is_tight = false;  // the bytes that come later do not fit; `text` says so
};

// Throws Error(kResources), with the numbers, if what is needed soon does not fit, or if a file
// system has too few inodes for a run's first files.
DiskFinding CheckDisk(const std::vector<DiskNeed>& needs);

struct RunFiles {
  std::optional<int64_t> saved_step;  // of the newest checkpoint, if there is one
  double checkpoint_bytes = 0;        // of one checkpoint
  int64_t best_checkpoints = 0;       // one for each task that is judged
};

// The space that the files of a run need from where it stands to its end.
std::vector<DiskNeed> RunDiskNeeds(const Config& config, const RunDirectory& directory,
                                   const RunFiles& files);

}  // namespace syntra
