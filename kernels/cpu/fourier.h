// SPDX-License-Identifier: Apache-2.0
// The data that the CPU's Fourier transforms of one length share.
#pragma once

#include <vector>

#include "kernels/fourier_plan.h"

namespace syntra {

struct FourierTables {
  explicit FourierTables(int64_t length)
      : plan(FourierPlan::Of(length)), roots(RootsOfUnity(length)) {}

  FourierPlan plan;
  std::vector<float> roots;
};

}  // namespace syntra
