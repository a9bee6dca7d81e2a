// SPDX-License-Identifier: Apache-2.0
// A copy of a replica's state, which can be saved while training changes the state itself.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.h"
#include "train/host_tensor.h"

namespace syntra {

class StateCopy {
 public:
  // Copies what this process holds of the tensors, always the same ones. The memory is taken at the
  // first call; throws Error(kResources) if it cannot be had.
  void Take(std::span<const HostTensor> tensors);
  // The tensors, which lie in the copy.
  const std::vector<TensorRecord>& tensors() const { return tensors_; }

 private:
  Buffer memory_;
  std::vector<TensorRecord> tensors_;
};

}  // namespace syntra
