// SPDX-License-Identifier: Apache-2.0
// A call of an op, which kernels are bound to.
#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor.h"
#include "kernels/attributes.h"

namespace syntra {

class PackedWeights;

// Everything that is known before the call runs.
struct OpCall {
  Attributes attributes;
  std::vector<TensorType> inputs;   // kNone: an optional operand that is absent
  std::vector<TensorType> outputs;  // kNone: a result that is not needed
  std::vector<bool> accumulate;     // for each output: add to the value in memory
  // Where products keep their weights, all numbers of the inputs but the first, because these never
  // change; null: they may change.
  PackedWeights* packed_weights = nullptr;
};

// The most calls that a joint call replaces (Op::joint).
inline constexpr size_t kMostJoined = 64;

}  // namespace syntra
