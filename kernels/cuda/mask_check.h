// SPDX-License-Identifier: Apache-2.0
// Whether the library's masks of bits are ours. cuBLASLt calls their layout opaque, and offers
// their epilogues for some products only: so our kernels may have to apply what it has written, or
// the other way round.
#pragma once

#include "kernels/gemm_problem.h"

namespace syntra::gpu {

// Tries a small product with this epilogue, which has a mask, on this thread's GPU: whether the
// library writes, or applies, the bits that kernels/bit_mask.h says. False if it does not offer
// the product.
bool LibraryMaskIsOurs(Epilogue epilogue, DType ab, DType c);

}  // namespace syntra::gpu
