// SPDX-License-Identifier: Apache-2.0
// Helpers to bind a kernel: types of operands, and typed access to them at run time.
#pragma once

#include <span>

#include "kernels/bound_kernel.h"

namespace syntra {

// The columns of matrices that lie side by side.
inline int64_t ColumnsSideBySide(std::span<const TensorType> matrices) {
  int64_t columns = 0;
  for (const TensorType& matrix : matrices) columns += matrix.shape[-1];
  return columns;
}

template <typename T>
const T* Input(const KernelArguments& arguments, int i) {
  return static_cast<const T*>(arguments.inputs[i]);
}
template <typename T>
T* Output(const KernelArguments& arguments, int i) {
  return static_cast<T*>(arguments.outputs[i]);
}

inline bool Accumulates(const OpCall& call, size_t output) {
  return output < call.accumulate.size() && call.accumulate[output];
}

// Calls body with a value of the C++ type of the activation type `dtype`.
template <typename Body>
void WithActivation(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) {
    body(BFloat16{});
  } else {
    body(float{});
  }
}

}  // namespace syntra
