// SPDX-License-Identifier: Apache-2.0
// Buckets of arenas that ranks exchange while a program runs: sums of gradients beside the backward
// half (Li et al. 2020, PyTorch Distributed), gathered parameters beside the forward half.
#pragma once

#include <span>
#include <vector>

#include "program/program.h"

namespace syntra {

struct GradientBucket {
  int64_t begin = 0, end = 0;  // elements of the arena of gradients
  size_t ready = 0;            // nothing writes to it once this many instructions have run
};

// The buckets of the arena of parameters (core/parameters.h), and after them the step's sums, in
// the order in which they are ready. Parameters lie in the order of the forward half, so neighbours
// are ready at about the same time.
std::vector<GradientBucket> GradientBuckets(const Program& program,
                                            const ParameterStore& parameters,
                                            int64_t bucket_elements);

// The instruction of the program's forward half before which each of `buckets` of the arena of
// parameters must be there. Buckets arrive in this order, and each waits for those before it, so
// the results ascend.
std::vector<size_t> BucketsNeeded(const Program& program, std::span<const ElementRange> buckets);

}  // namespace syntra
