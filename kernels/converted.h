// SPDX-License-Identifier: Apache-2.0
// Converts operands of a matrix product to the product's element type.
#pragma once

#include "kernels/bound_kernel.h"
#include "kernels/workspace.h"

namespace syntra {

// An operand in the product's element type: the given tensor, or a converted copy in the workspace.
class Converted {
 public:
  // `bind_copy` binds the backend's copy kernel.
  template <typename BindCopy>
  Converted(const TensorType& given, DType wanted, const BindCopy& bind_copy,
            WorkspaceLayout& layout) {
    if (given.dtype == wanted) return;
    const TensorType converted{wanted, given.shape};
    offset_ = layout.Place(converted.bytes());
    copy_ = bind_copy(OpCall{{}, {given}, {converted}, {false}})->run;
  }

  // Converts input i if needed. Returns the address of the operand.
  const void* Run(const KernelArguments& arguments, int i) const {
    if (!copy_) return arguments.inputs[i];
    void* converted = arguments.workspace + offset_;
    copy_({arguments.inputs.subspan(i, 1), {&converted, 1}, nullptr, arguments.stream});
    return converted;
  }

 private:
  std::function<void(const KernelArguments&)> copy_;
  size_t offset_ = 0;
};

}  // namespace syntra
