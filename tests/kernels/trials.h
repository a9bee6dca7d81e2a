// SPDX-License-Identifier: Apache-2.0
// The calls that the kernel sweep runs: the ops' own cases, larger ones that are split over threads
// and blocks, and calls of gradient ops without cases, whose inputs must come from a forward call.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/kernels/case_data.h"

namespace syntra {

struct Trial {
  const Op& op;
  OpCall call;
  std::vector<CaseTensor> inputs, outputs;  // outputs: what they hold before the call
};

std::vector<SweepCase> AllTrials();
Trial MakeTrial(const SweepCase& sweep, uint64_t seed);

// The ops whose results the gradient rules add to gradients: their kernels must be able to add.
std::set<std::string> ContributedOps();

}  // namespace syntra
