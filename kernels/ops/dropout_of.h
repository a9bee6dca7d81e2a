// SPDX-License-Identifier: Apache-2.0
// Ops that end in dropout: their reference is that of dropout after another op's.
#pragma once

#include <array>

#include "kernels/ops/shapes.h"

namespace syntra {

// The dropout of an op with attributes {rate, site, per_element}, on values or gradients of `type`.
inline OpCall DropoutOf(const OpCall& call, const TensorType& type, const TensorType& keys) {
  const Attributes& of = call.attributes;
  return {.attributes = {{"rate", of.Number("rate")},
                         {"site", of.Int("site")},
                         {"per_element", of.Flag("per_element")},
                         {"group", int64_t{1}}},
          .inputs = {type, keys},
          .outputs = {type},
          .accumulate = {false}};
}

// y = dropout(x); y may be x.
inline void DropoutReference(const OpCall& call, const ReferenceTensor& x,
                             const ReferenceTensor& keys, const ReferenceTensor& y) {
  const std::array inputs{x, keys};
  GetOp("dropout").reference(DropoutOf(call, x.type, keys.type), inputs, std::span(&y, 1));
}

}  // namespace syntra
