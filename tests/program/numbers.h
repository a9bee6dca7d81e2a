// SPDX-License-Identifier: Apache-2.0
// Random operands, and results as vectors, for tests that run programs.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/parameters.h"
#include "kernels/bfloat16.h"
#include "program/executable.h"

namespace syntra {

// Normal numbers that depend only on `name`, the seed and the index.
inline std::vector<float> NormalNumbers(const std::string& name, int64_t count,
                                        double deviation = 1, uint64_t seed = 7) {
  std::vector<float> values(count);
  ParameterSpec spec{name, Shape{count}, Initializer::Normal(deviation), true};
  Initialize(spec, seed, values);
  return values;
}

inline std::vector<double> Numbers(const TensorView& view) {
  switch (view.type.dtype) {
    case DType::kF64:
      return {view.As<double>().begin(), view.As<double>().end()};
    case DType::kF32:
      return {view.As<float>().begin(), view.As<float>().end()};
    case DType::kI32:
      return {view.As<int32_t>().begin(), view.As<int32_t>().end()};
    default:
      break;
  }
  std::vector<double> numbers;
  for (const BFloat16 value : view.As<BFloat16>()) numbers.push_back(ToFloat(value));
  return numbers;
}

inline double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

inline double DistanceOf(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

inline double LargestOf(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

inline double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The largest difference between elements, relative to the largest element of `truth`.
inline double LargestError(const std::vector<double>& found, const std::vector<double>& truth) {
  return LargestDifference(found, truth) / std::max(LargestOf(truth), 1e-30);
}

}  // namespace syntra
