// SPDX-License-Identifier: Apache-2.0
// Checks whether a run fits into memory, before any memory is taken.
#pragma once

#include <string>
#include <vector>

#include "base/memory_limits.h"
#include "plan/training_plan.h"

namespace syntra {

// "needs 1.2 GiB, this machine has 15.6 GiB". Throws Error(kResources) if what a run holds at once
// does not fit into the free memory of the plan's device, or if its part of the host's memory does
// not fit into one of `limits`. The error gives the sizes of the parts and the largest micro-batch
// that fits. `ranks_on_host`: ranks of the run that share the host's memory.
std::string CheckFits(const TrainingPlan& plan, int ranks_on_host = 1,
                      const std::vector<MemoryLimit>& limits = MemoryLimits());

}  // namespace syntra
