// SPDX-License-Identifier: Apache-2.0
// Whether a run fits into memory, before any of it is taken.
#pragma once

#include <string>
#include <vector>

#include "base/memory_limits.h"
#include "train/sizes.h"

namespace syntra {

// The ranks of a run, as far as memory is concerned.
struct RankPlaces {
  int ranks = 1;
  int ranks_on_host = 1;  // they share the host's memory
  Backend* backend = &CpuBackend();
};

// "needs 1.2 GiB, this machine has 15.6 GiB". Throws Error(kResources) if what pretraining holds at
// once does not fit into the free memory of the backend's device or, on the CPU, into one of
// `limits`: with the sizes of its parts and the largest micro-batch that fits. `sizes` are
// RunSizesOf the configuration.
std::string CheckFits(const Config& config, const RunSizes& sizes, const RankPlaces& places,
                      const std::vector<MemoryLimit>& limits = MemoryLimits());

}  // namespace syntra
