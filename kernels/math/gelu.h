// SPDX-License-Identifier: Apache-2.0
// The tanh form of the Gaussian error linear unit (Hendrycks and Gimpel 2016, section 2):
// gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
#pragma once

#include <cmath>

#include "base/host_device.h"

namespace syntra {

inline constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

template <typename T>
SYNTRA_HOST_DEVICE T Gelu(T x) {
  const T inner = T(kGeluScale) * (x + T(kGeluCubic) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

// d gelu(x) / dx.
template <typename T>
SYNTRA_HOST_DEVICE T GeluSlope(T x) {
  const T inner = T(kGeluScale) * (x + T(kGeluCubic) * x * x * x);
  const T inner_slope = T(kGeluScale) * (T(1) + T(3 * kGeluCubic) * x * x);
  const T tanh = std::tanh(inner);
  return T(0.5) * (T(1) + tanh) + T(0.5) * x * (T(1) - tanh * tanh) * inner_slope;
}

}  // namespace syntra
