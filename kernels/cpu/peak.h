// SPDX-License-Identifier: Apache-2.0
// The arithmetic limit that a run's speed is compared with: loops of fused multiply-adds that touch
// registers only.
#pragma once

#include "core/dtype.h"

namespace syntra {

// FLOP/s that the threads of the pool can reach together in products of `type`, kF32 or kBF16
// (which accumulate in f32): the best of at most ten tries that take about `seconds` in all. Time
// counts while a processor runs a thread, so others that keep the machine busy do not lower it. NaN
// where it is not known: the processor lacks the instructions, or multiplies bf16 in matrix units
// (AMX), which are not measured.
double MeasurePeakFlops(DType type, double seconds);

// The seconds that find the peak to a few percent where nobody may be kept waiting.
inline constexpr double kBriefPeakSeconds = 0.01;

}  // namespace syntra
