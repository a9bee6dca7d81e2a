// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as functions of the step, counted from 0.
#pragma once

#include <cstdint>

#include "configs/schema/config.pb.h"

namespace syntra {

// The learning rate of the update in step `step` of `total_steps`.
//   RSQRT:  rate / sqrt(max(step, warmup_steps, 1))                    (Raffel et al. 2020)
//   others: rate * step / warmup_steps while step < warmup_steps. Then CONSTANT stays at `rate`;
//           LINEAR and COSINE fall to `final_rate`, which the last step has, along a line or half a
//           cosine wave; a single step after the warm-up has `rate`. INVERSE_SQRT is
//           rate * sqrt(warmup_steps / step), both 1 at least (Vaswani et al. 2017, equation 3).
double LearningRate(const ScheduleConfig& schedule, int64_t step, int64_t total_steps);

}  // namespace syntra
