// Operands of matrix products whose element type is not the product's.
#pragma once

#include "core/buffer.h"
#include "kernels/cpu/copy.h"

namespace syntra {

// An operand in the product's element type: as given, or converted into the workspace.
class Converted {
 public:
  Converted(const TensorType& given, DType wanted, size_t& workspace_bytes) {
    if (given.dtype == wanted) return;
    offset_ = workspace_bytes;
    const TensorType converted{wanted, given.shape};
    workspace_bytes = AlignUp(workspace_bytes + converted.bytes());
    copy_ = cpu_copy({.inputs = {given}, .outputs = {converted}, .accumulate = {false}})->run;
  }

  const void* Run(void* given, std::byte* workspace) const {
    if (!copy_) return given;
    void* converted = workspace + offset_;
    copy_({.inputs = {&given, 1}, .outputs = {&converted, 1}, .workspace = nullptr});
    return converted;
  }

 private:
  std::function<void(const KernelArguments&)> copy_;
  size_t offset_ = 0;
};

}  // namespace syntra
