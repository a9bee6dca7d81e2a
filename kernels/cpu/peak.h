// SPDX-License-Identifier: Apache-2.0
// Measures the peak FLOP/s of the processor, to which a run's speed (MFU) is compared: loops of
// fused multiply-adds that use only registers.
#pragma once

#include "core/dtype.h"

namespace syntra {

// The FLOP/s that the threads of the pool reach together with products of `type`, kF32 or kBF16
// (which accumulate in f32): the best of at most ten tries, which take about `seconds` in all. Only
// processor time counts, so other work on the machine does not lower the result. With bf16 by AMX
// where there is AMX. NaN if the processor lacks the instructions.
double MeasurePeakFlops(DType type, double seconds);

// The share of the peak that the training step of a model of 60 M parameters reached on processors
// of this kind (tests/bench/cpu.md).
double UsualShareOfPeak(DType type);

// Enough seconds to find the peak to a few percent without a noticeable delay.
inline constexpr double kBriefPeakSeconds = 0.01;

}  // namespace syntra
