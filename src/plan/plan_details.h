// SPDX-License-Identifier: Apache-2.0
// Details of a plan, for people: the values that are alive at the peak of memory, and what each
// rank updates.
#pragma once

#include <string>
#include <vector>

#include "plan/training_plan.h"

namespace syntra {

// A value that is alive at the step of a training program that needs most memory.
struct LiveBlock {
  size_t bytes;
  std::string type;     // "f32[4, 512, 768]", or "workspace"
  std::string made_by;  // the op, and its parameters
};
// Returns all such values, the largest first.
std::vector<LiveBlock> AliveAtPeak(const TrainingPlan& plan);

// The parameters that a rank updates, and whose optimizer state it keeps.
struct ShareSizes {
  std::vector<std::string> parameters;  // names, with "[begin, end)" if the rank has a part of one
  int64_t updated = 0;                  // of their elements
  double optimizer_bytes = 0;
};
// The share of each rank. GPUs' shares are as large as those of CPUs, but have a part in each
// bucket of the gradients.
std::vector<ShareSizes> SharesOf(const TrainingPlan& plan);

}  // namespace syntra
