// SPDX-License-Identifier: Apache-2.0
// The numbers of one update that change from step to step, as slots of an f32 vector. Kernels read
// them as they run, so a program that was bound or captured once serves every step.
#pragma once

namespace syntra::hyper {

// The slots that every optimizer has.
enum Slot : int {
  kRate,
  kGradientScale,  // NaN: the update changes nothing
  kCommonSlots
};

// 1 - beta^t of both averages, and the decay of parameters before it is multiplied by the rate.
enum AdamWSlot : int { kBias1 = kCommonSlots, kBias2, kWeightDecay, kAdamWSlots };

enum AdafactorSlot : int { kBeta2 = kCommonSlots, kAdafactorSlots };

}  // namespace syntra::hyper
