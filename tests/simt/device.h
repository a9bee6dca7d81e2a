// SPDX-License-Identifier: Apache-2.0
// The device of the simulated GPU. Its memory is accessible only to its own work, and work is done
// as late as CUDA allows. Host code that accesses the GPU's memory ends with a segmentation fault;
// host code that does not wait for work reads old values.
//
// Environment variables, read when a device is opened:
//   SYNTRA_SIMT_GPUS        number of GPUs, 1 by default
//   SYNTRA_SIMT_MEMORY      bytes of memory of each GPU
//   SYNTRA_SIMT_CAPABILITY  ten times their compute capability, 90 by default
//   SYNTRA_SIMT_DRIVER      the version of CUDA that the driver supports, 12010 by default
//   SYNTRA_SIMT_SIDE        when the work of side streams is done: "late" (default), when the main
//                           stream needs it, or "early", before the main stream's work, as far as
//                           Fork allows
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace syntra::simt {

// KernelArguments::stream points to this.
struct Stream {
  std::vector<std::function<void()>> given;
  bool capturing = false;
};

// The most logits of a chunk (kernels/cuda/logits.h).
inline constexpr int64_t kMostLogits = 1 << 19;

// Enqueues work on a stream. If the stream is null, the work is done at once.
void Give(void* stream, std::function<void()> work);

}  // namespace syntra::simt
