// SPDX-License-Identifier: Apache-2.0
// kernels/cuda/trial.h on the simulated GPU: what is enqueued is done at once, in host memory.
#pragma once

#include <cstring>
#include <vector>

#include "core/buffer.h"

namespace syntra::gpu {

class Trial {
 public:
  void* stream() const { return nullptr; }
  void* Allocate(size_t bytes) { return memory_.emplace_back(bytes, "a trial").data(); }
  std::vector<std::byte> Fetch(const void* from, size_t bytes) const {
    std::vector<std::byte> result(bytes);
    std::memcpy(result.data(), from, bytes);
    return result;
  }

 private:
  std::vector<Buffer> memory_;
};

}  // namespace syntra::gpu
