// SPDX-License-Identifier: Apache-2.0
// The GPUs that this process may use, as backends. A program is linked with one implementation:
// kernels/cuda, kernels/no_cuda.cc where there was no CUDA to build with, or tests/simt.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace syntra {

struct GpuReport {
  int count = 0;
  std::string problem;  // why there is none, and what to do about it; empty: there are some
  // Whether the machine looks as if it had a GPU that cannot be used: a broken installation.
  bool broken = false;
  std::vector<std::string> facts;  // one a GPU: name, compute capability, memory
  std::string versions;            // of driver and libraries
};
// Never throws.
GpuReport FindGpus();

// GPU `index` of FindGpus().count. Call from the thread that will use it. Throws
// Error(kResources), saying what to do, if it cannot be used.
std::unique_ptr<Backend> OpenGpu(int index);

}  // namespace syntra
