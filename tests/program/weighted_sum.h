// SPDX-License-Identifier: Apache-2.0
// The scalar that tests differentiate.
#pragma once

#include "program/builder.h"

namespace syntra {

// sum_i x_i w_i, f32[1], of tensors of the same shape. For gradients w is a random cotangent.
inline Value WeightedSum(Recorder& recorder, Value x, Value w) {
  return RecordOne(recorder, "sum_to",
                   {{"shape", Attributes::Integers{1}}, {"dtype", std::string("f32")}}, {x, w});
}

}  // namespace syntra
