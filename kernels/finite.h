// SPDX-License-Identifier: Apache-2.0
// For tests (Executable::RunChecked): looks for NaN and plus infinity.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/bfloat16.h"

namespace syntra {

// Whether a tensor in the host's memory holds no NaN and no plus infinity. Minus infinity passes:
// it is the logarithm of an empty sum (attention where nothing is allowed).
inline bool AllFinite(TensorView view) {
  const TensorType& type = view.type;
  const auto finite = [&]<typename T>(T, const auto& number) {
    bool all = true;
    type.ForEachRun([&](int64_t place, int64_t count) {
      const T* run = static_cast<const T*>(view.data) + place;
      const auto ends = [&](T v) { return number(v) < std::numeric_limits<double>::infinity(); };
      all = all && std::all_of(run, run + count, ends);
    });
    return all;
  };
  switch (type.dtype) {
    case DType::kF32:
      return finite(float{}, [](float v) { return v; });
    case DType::kF64:
      return finite(double{}, [](double v) { return v; });
    case DType::kBF16:
      return finite(BFloat16{}, [](BFloat16 v) { return ToFloat(v); });
    default:
      return true;
  }
}

}  // namespace syntra
