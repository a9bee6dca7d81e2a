// SPDX-License-Identifier: Apache-2.0
// What the kernel sweep runs: the ops' own cases, larger ones that threads and blocks split, and
// the calls of gradient ops that have no cases because their inputs must come from a forward call.
#pragma once

#include "tests/kernels/case_data.h"

namespace syntra {

struct Trial {
  const Op& op;
  OpCall call;
  std::vector<CaseTensor> inputs, outputs;  // outputs: what they hold before the call
};

std::vector<SweepCase> AllTrials();
Trial MakeTrial(const SweepCase& sweep, uint64_t seed);

}  // namespace syntra
