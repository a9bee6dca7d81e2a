// SPDX-License-Identifier: Apache-2.0
// Products on Hopper GPUs that apply or write a mask, or a ReLU, to their sums in registers.
// cuBLASLt's products do so slowly (gemm.h), and another kernel would move the result through
// memory once more.
#pragma once

#include "kernels/matmul_call.h"

namespace syntra::gpu {

// To be raised whenever the kernel may have become faster or slower: then it is timed again
// (FastestKernel).
inline constexpr int kHopperMatmulVersion = 2;

// Whether HopperMatmul computes this product, and this GPU runs it. The answer does not depend on
// addresses.
bool HopperServesMatmul(const MatmulCall& matmul);

// Enqueues c = epilogue(a op(b)). `a` and `b` are bf16, whatever they were before; `mask` is read
// or written as the epilogue says (kernels/bit_mask.h).
void HopperMatmul(const KernelArguments& call, const GemmProblem& problem, const BFloat16* a,
                  const BFloat16* b, BFloat16* c, void* mask);

}  // namespace syntra::gpu
