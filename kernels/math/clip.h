// SPDX-License-Identifier: Apache-2.0
// Clipping by the norm of all gradients (Pascanu et al. 2013), shared by every backend.
#pragma once

#include <cmath>

#include "base/host_device.h"

namespace syntra {

// What the gradients are multiplied by so that their joint norm is at most `limit` (0: as they
// are). NaN where the sum of their squares or the objective is not finite.
SYNTRA_HOST_DEVICE inline double ClipFactor(double sum_squares, double objective, double limit) {
  if (!std::isfinite(sum_squares) || !std::isfinite(objective)) return NAN;
  const double norm = std::sqrt(sum_squares);
  return limit > 0 && norm > limit ? limit / norm : 1.0;
}

}  // namespace syntra
