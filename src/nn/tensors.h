// SPDX-License-Identifier: Apache-2.0
// Short names for single ops that layers are composed of. Their contracts are in kernels/ops.
#pragma once

#include "nn/scope.h"

namespace syntra {

Value Reshape(const Scope& scope, Value x, Attributes::Integers shape);
Value Transpose(const Scope& scope, Value x, Attributes::Integers axes);
Value Slice(const Scope& scope, Value x, int64_t axis, int64_t begin, int64_t length);
// The first `length` entries along `axis`; x itself if there are no more.
Value First(const Scope& scope, Value x, int64_t axis, int64_t length);
// One of the functions in kernels/math/activation.inc.
Value Activation(const Scope& scope, const std::string& kind, Value x);
Value Add(const Scope& scope, Value a, Value b);
Value Multiply(const Scope& scope, Value a, Value b);
// x [B, T, D], zero where segments, i32 [B, T], are 0.
Value WithoutPadding(const Scope& scope, Value x, Value segments);

}  // namespace syntra
