// SPDX-License-Identifier: Apache-2.0
// Masks of bits (kernels/bit_mask.h), and ReLU where no product does it.
#pragma once

#include "kernels/bound_kernel.h"

namespace syntra::gpu {

// Enqueued on the call's stream. `matrix` holds elements of a type that is f32 or bf16.
void WriteMask(const KernelArguments& call, const TensorType& type, const void* matrix,
               void* mask);  // of what is positive
void ApplyMask(const KernelArguments& call, const TensorType& type, const void* mask,
               void* matrix);  // 0 where it has no bit
void Rectify(const KernelArguments& call, const TensorType& type, void* matrix);  // max(x, 0)

}  // namespace syntra::gpu
