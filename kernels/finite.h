// SPDX-License-Identifier: Apache-2.0
// Looks for values that are not finite.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/bfloat16.h"

namespace syntra {

// Of a tensor in the host's memory. Minus infinity passes: it is the logarithm of an empty sum
// (attention where nothing is allowed).
inline bool AllFinite(TensorView view) {
  const auto finite = [](const auto& values, const auto& number) {
    return std::ranges::all_of(
        values, [&](auto v) { return number(v) < std::numeric_limits<double>::infinity(); });
  };
  switch (view.type.dtype) {
    case DType::kF32:
      return finite(view.As<float>(), [](float v) { return v; });
    case DType::kF64:
      return finite(view.As<double>(), [](double v) { return v; });
    case DType::kBF16:
      return finite(view.As<BFloat16>(), [](BFloat16 v) { return ToFloat(v); });
    default:
      return true;
  }
}

}  // namespace syntra
