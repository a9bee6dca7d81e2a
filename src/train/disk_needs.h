// SPDX-License-Identifier: Apache-2.0
// Checks whether files can be written, and fit onto their file systems.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

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

}  // namespace syntra
