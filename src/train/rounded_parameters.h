// SPDX-License-Identifier: Apache-2.0
// bf16 copies of f32 parameters. Products of bf16 activations read them on GPUs; without copies
// they would round their weights each time they run. The copies lie in an arena of their own, at
// the offsets of the parameters. The kernel that updates a parameter also writes its copy; other
// code that writes parameters must refresh the copies.
#pragma once

#include <map>

#include "core/parameters.h"
#include "kernels/backend.h"

namespace syntra {

class RoundedParameters {
 public:
  // Makes the copies of an arena of `elements` zeros. The backend must outlive it.
  RoundedParameters(Backend& backend, int64_t elements);

  void* data() const { return copies_.data(); }
  // Enqueues the rounding of `parameters`, the elements from `first` on of the arena of parameters.
  void Refresh(const TensorView& parameters, int64_t first);

 private:
  Backend& backend_;
  Buffer copies_;
  std::map<int64_t, BoundKernel> kernels_;  // by how many elements they round
};

}  // namespace syntra
