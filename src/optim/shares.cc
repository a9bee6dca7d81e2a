// SPDX-License-Identifier: Apache-2.0
#include "optim/shares.h"

#include <algorithm>
#include <optional>

namespace syntra {
namespace {

// Where each tensor's part of the arena ends, its padding included.
std::vector<int64_t> TensorEnds(const ParameterStore& parameters) {
  std::vector<int64_t> ends;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.offset > 0) ends.push_back(parameter.offset);
  }
  ends.push_back(parameters.arena_elements());
  return ends;
}

// Gives each rank as many of the next tensors as fit into `most` elements; nullopt if some are left
// over.
std::optional<std::vector<int64_t>> Fill(const std::vector<int64_t>& tensor_ends, int ranks,
                                         int64_t most) {
  std::vector<int64_t> ends;
  int64_t begin = 0, end = 0;
  for (const int64_t next : tensor_ends) {
    if (next - begin > most) {
      ends.push_back(end);
      begin = end;
    }
    if (next - begin > most || std::ssize(ends) == ranks) return std::nullopt;
    end = next;
  }
  ends.resize(ranks, end);
  return ends;
}

// The largest share is as small as it can be.
Shares WholeTensors(const ParameterStore& parameters, int ranks) {
  const int64_t elements = parameters.arena_elements();
  const std::vector<int64_t> tensor_ends = TensorEnds(parameters);
  int64_t too_small = elements / ranks - 1, enough = elements;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (Fill(tensor_ends, ranks, middle) ? enough : too_small) = middle;
  }
  return Shares(Fill(tensor_ends, ranks, enough).value());
}

Shares EqualParts(int64_t elements, int ranks) {
  SYNTRA_CHECK(ParameterStore::RoundUp(elements, ranks) == elements, "{} elements for {} ranks",
               elements, ranks);
  return Shares::Even(elements, ranks);
}

}  // namespace

std::vector<SharedBucket> UpdateShares(const ParameterStore& parameters, UpdateGrain grain,
                                       int ranks, int64_t bucket_elements) {
  std::optional<Shares> tensors;
  if (grain == UpdateGrain::kTensor) tensors = WholeTensors(parameters, ranks);
  std::vector<SharedBucket> buckets;
  for (const ElementRange& bucket : parameters.Buckets(bucket_elements)) {
    buckets.push_back({bucket, tensors ? tensors->Within(bucket.begin, bucket.end)
                                       : EqualParts(bucket.size(), ranks)});
  }
  return buckets;
}

std::vector<ElementRange> PartsOf(std::span<const SharedBucket> buckets, int rank) {
  std::vector<ElementRange> parts;
  for (const auto& [elements, shares] : buckets) {
    parts.push_back({elements.begin + shares.begin(rank), elements.begin + shares.end(rank)});
  }
  return parts;
}

std::vector<ElementRange> Joined(std::vector<ElementRange> ranges) {
  std::ranges::sort(ranges, {}, &ElementRange::begin);
  std::vector<ElementRange> joined;
  for (const ElementRange& range : ranges) {
    if (range.size() == 0) continue;
    if (!joined.empty() && joined.back().end == range.begin) {
      joined.back().end = range.end;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace syntra
