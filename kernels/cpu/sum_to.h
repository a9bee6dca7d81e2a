// SPDX-License-Identifier: Apache-2.0
// A bound call of sum_to.
#pragma once

#include "kernels/sum_plan.h"

namespace syntra {

struct SumCall {
  SumPlan plan;
  int64_t parts;  // of the terms of each result
  DType x, factor, y;
  bool accumulate;
};

}  // namespace syntra
