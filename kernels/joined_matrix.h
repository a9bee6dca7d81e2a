// SPDX-License-Identifier: Apache-2.0
// Matrices with equally many rows side by side, as one matrix in the workspace.
#pragma once

#include <span>
#include <vector>

#include "kernels/strided_call.h"
#include "kernels/workspace.h"

namespace syntra {

class JoinedMatrix {
 public:
  JoinedMatrix() = default;  // there is nothing to join
  // `parts`: the matrices, which may have a pitch; `wanted`: the element type of the whole.
  JoinedMatrix(std::span<const TensorType> parts, DType wanted, WorkspaceLayout& layout) {
    const int64_t columns = ColumnsSideBySide(parts);
    for (const TensorType& part : parts) {
      const Shape shape = {part.shape.rows(), part.shape[-1]};
      StridedCall& copy = copies_.emplace_back(
          StridedCall::Copy(shape, wanted, {columns, 1}, {part.row_pitch(), 1}));
      copy.a = part.dtype;
      copy.y_offset = columns_;
      columns_ += shape[1];
    }
    offset_ = layout.Place(parts[0].shape.rows() * columns * SizeOf(wanted));
  }

  bool empty() const { return copies_.empty(); }
  // Copies the parts, which are the inputs of the call from `first` on, with run(copies, to, from),
  // which gets a copy and a source address for each part. Returns the address of the whole.
  template <typename Run>
  void* Join(const KernelArguments& arguments, size_t first, const Run& run) const {
    void* whole = arguments.workspace + offset_;
    run(std::span(copies_), whole, arguments.inputs.subspan(first, copies_.size()));
    return whole;
  }

 private:
  std::vector<StridedCall> copies_;
  int64_t columns_ = 0;
  size_t offset_ = 0;
};

}  // namespace syntra
