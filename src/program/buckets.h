// SPDX-License-Identifier: Apache-2.0
// The gradient arena cut into pieces that are summed over the ranks while the rest of the backward
// half still runs (Li et al. 2020, PyTorch Distributed).
#pragma once

#include <vector>

#include "program/program.h"

namespace syntra {

struct GradientBucket {
  int64_t begin = 0, end = 0;  // elements of the arena of gradients
  size_t ready = 0;  // once so many instructions of the program have run, nothing writes to it
};

// The pieces of the arena of parameters (core/parameters.h), and behind them the step's sums, in
// the order in which they are ready. Parameters lie in the order of the forward half, so neighbours
// are ready at about the same time.
std::vector<GradientBucket> GradientBuckets(const Program& program,
                                            const ParameterStore& parameters,
                                            int64_t bucket_elements);

}  // namespace syntra
