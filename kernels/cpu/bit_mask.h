// SPDX-License-Identifier: Apache-2.0
// ReLU, and masks of bits (kernels/bit_mask.h).
#pragma once

#include "core/tensor.h"

namespace syntra {

// `matrix` holds elements of a type that is f32 or bf16.
// max(x, 0), and NaN of NaN. `mask`: gets bits where that is positive; null: nobody needs it.
void Rectify(const TensorType& type, void* matrix, void* mask);
void ApplyMask(const TensorType& type, const void* mask, void* matrix);  // 0 where it has no bit

}  // namespace syntra
