// SPDX-License-Identifier: Apache-2.0
// The GPUs that this process may use. A program is linked with one implementation: kernels/cuda,
// kernels/no_cuda.cc in builds without CUDA, or tests/simt.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace syntra {

struct GpuReport {
  int count = 0;
  std::string problem;  // if count is 0: why, and what to do about it
  // Whether the machine seems to have a GPU that a broken installation makes unusable.
  bool broken = false;
  std::vector<std::string> facts;  // of each GPU: name, compute capability, memory
  // The address of each GPU on the PCI bus, "0000:3b:00.0"; empty: not known.
  std::vector<std::string> addresses;
  std::string versions;  // of the driver and the libraries
};
// Never throws.
GpuReport FindGpus();

// The version of cuBLASLt, without which GPUs compute no products, or why it cannot be loaded;
// empty in builds without CUDA. Loading it takes half a gigabyte. Never throws.
std::string CublasLtVersion();

// "13.2" of 13020, as the driver and the runtime number their versions.
inline std::string CudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Backend::KeepsRounded of every GPU, also for a program that plans for GPUs and has none.
inline bool GpusKeepRounded(DType activations) { return activations == DType::kBF16; }

// Opens GPU `index` < FindGpus().count. Call it on the thread that will use the GPU. Throws
// Error(kResources), which says what to do, if the GPU cannot be used.
std::unique_ptr<Backend> OpenGpu(int index);

}  // namespace syntra
