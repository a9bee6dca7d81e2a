// SPDX-License-Identifier: Apache-2.0
// Gradient clipping by global norm (Pascanu et al. 2013), shared by all backends.
#pragma once

#include <cmath>

#include "base/host_device.h"

namespace syntra {

// The factor that brings the norm of all gradients together to at most `limit`; 1 if `limit` is 0.
// NaN if the sum of their squares or the objective is not finite.
SYNTRA_HOST_DEVICE inline double ClipFactor(double sum_squares, double objective, double limit) {
  if (!std::isfinite(sum_squares) || !std::isfinite(objective)) return NAN;
  const double norm = std::sqrt(sum_squares);
  return limit > 0 && norm > limit ? limit / norm : 1.0;
}

}  // namespace syntra
