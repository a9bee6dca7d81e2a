// SPDX-License-Identifier: Apache-2.0
// How ranks share an update: each updates a part of the parameters and keeps the optimizer's state
// of that part alone (ZeRO, stage 1; Rajbhandari et al. 2020).
#pragma once

#include <span>
#include <vector>

#include "core/parameters.h"
#include "dist/shares.h"

namespace syntra {

// The smallest unit into which an optimizer's update can be cut: an element, or a tensor where the
// update of each element depends on all of them.
enum class UpdateGrain { kElement, kTensor };

// A bucket of the arena of parameters, and which part of it each rank updates.
struct SharedBucket {
  ElementRange elements;
  Shares shares;  // of the bucket's elements
};

// The buckets in which gradients are summed (ParameterStore::Buckets), shared by `ranks` ranks.
// With kElement the ranks have equal parts of every bucket, if the arena was made for that number
// of ranks (ParameterStore::ShareEqually). With kTensor a rank has tensors that are neighbours in
// the arena, and the largest share of the arena is as small as it can be.
std::vector<SharedBucket> UpdateShares(const ParameterStore& parameters, UpdateGrain grain,
                                       int ranks, int64_t bucket_elements);

// The part of each bucket that a rank updates; empty where it updates nothing of the bucket.
std::vector<ElementRange> PartsOf(std::span<const SharedBucket> buckets, int rank);

// Ranges that do not overlap in the order of the arena; neighbours are one, empty ones are none.
std::vector<ElementRange> Joined(std::vector<ElementRange> ranges);

}  // namespace syntra
