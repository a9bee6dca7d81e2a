// SPDX-License-Identifier: Apache-2.0
// Checks calls of the CUDA runtime: if the call fails, SYNTRA_CUDA(cudaMemcpy(...)) throws an Error
// that says what failed, why, and what to do about it.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"

namespace syntra::internal {
// Throws Error(kInternal) for what only a bug in this program causes, else Error(kResources).
void CudaFailed(cudaError_t status, const char* call);
}  // namespace syntra::internal

#define SYNTRA_CUDA(call)                                                      \
  do {                                                                         \
    if (const cudaError_t status = call; status != cudaSuccess) [[unlikely]] { \
      ::syntra::internal::CudaFailed(status, #call);                           \
    }                                                                          \
  } while (false)
