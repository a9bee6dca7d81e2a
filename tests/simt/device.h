// SPDX-License-Identifier: Apache-2.0
// The host's GPU as a device: memory that only its own work can reach, and work that is done as
// late as CUDA may do it. Host code that touches the GPU's memory ends with a segmentation fault;
// host code that does not wait reads old values.
//
// Environment, read when a device is opened: SYNTRA_SIMT_GPUS (1): how many there are;
// SYNTRA_SIMT_MEMORY: bytes of memory of each; SYNTRA_SIMT_CAPABILITY (90): ten times their compute
// capability; SYNTRA_SIMT_SIDE: when the work of side streams is done: "late" (the default): when
// the device's own work needs it, "early": before the device's own work, as far as Fork allows.
#pragma once

#include <functional>
#include <vector>

namespace syntra::simt {

// What KernelArguments::stream points to.
struct Stream {
  std::vector<std::function<void()>> given;
  bool capturing = false;
};

// Enqueues work on a stream. Null: the work is done at once.
void Give(void* stream, std::function<void()> work);

}  // namespace syntra::simt
