// Checks calls of the CUDA runtime: SYNTRA_CUDA(cudaMemcpy(...)) throws what failed, and why.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"

namespace syntra {

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  Fail(ExitCode::kResources, "{}: {} ({})", call, cudaGetErrorString(status),
       cudaGetErrorName(status));
}

}  // namespace syntra

#define SYNTRA_CUDA(call) ::syntra::CheckCuda(call, #call)
