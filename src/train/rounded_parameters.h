// SPDX-License-Identifier: Apache-2.0
// bf16 copies of f32 parameters, which products of bf16 activations on GPUs read: without them they
// would round their weights each time they run. The copies lie in an arena of their own, at the
// offsets of the parameters. The kernel that updates a parameter writes its copy, too; whoever else
// writes parameters refreshes it.
#pragma once

#include <map>

#include "core/parameters.h"
#include "kernels/backend.h"

namespace syntra {

class RoundedParameters {
 public:
  // Copies of an arena of so many elements that are all zero. The backend must outlive it.
  RoundedParameters(Backend& backend, int64_t elements);

  void* data() const { return copies_.data(); }
  // Enqueues the rounding of these elements of the arena of parameters.
  void Refresh(const TensorView& parameters, int64_t first);

 private:
  Backend& backend_;
  Buffer copies_;
  std::map<int64_t, BoundKernel> kernels_;  // by how many elements they round
};

}  // namespace syntra
