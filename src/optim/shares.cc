// SPDX-License-Identifier: Apache-2.0
#include "optim/shares.h"

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

}  // namespace

UpdateGrain GrainOf(const OptimizerConfig& config) {
  return config.kind() == OptimizerConfig::ADAMW ? UpdateGrain::kElement : UpdateGrain::kTensor;
}

Shares UpdateShares(const ParameterStore& parameters, UpdateGrain grain, int ranks) {
  const int64_t elements = parameters.arena_elements();
  if (grain == UpdateGrain::kElement) {
    return Shares::Even(elements, ranks, ParameterStore::kBlock);
  }
  const std::vector<int64_t> tensor_ends = TensorEnds(parameters);
  int64_t too_small = elements / ranks - 1, enough = elements;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (Fill(tensor_ends, ranks, middle) ? enough : too_small) = middle;
  }
  return Shares(Fill(tensor_ends, ranks, enough).value());
}

}  // namespace syntra
