// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as functions of the step, counted from 0.
#pragma once

#include <cstdint>

#include "configs/schema/config.pb.h"

namespace syntra {

// The learning rate of the update in step `step` of `total_steps`, by the formulas of
// ScheduleConfig.Kind in configs/schema/config.proto. A single step after the warm-up has `rate`.
double LearningRate(const ScheduleConfig& schedule, int64_t step, int64_t total_steps);

}  // namespace syntra
