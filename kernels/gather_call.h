// SPDX-License-Identifier: Apache-2.0
// The copies that a call of gather_rows or gather_rows_grad stands for
// (kernels/ops/gather_rows.cc).
#pragma once

#include "core/tensor.h"

namespace syntra {

// A tensor seen as blocks [blocks, extent, width], and for each block `count` numbers of its rows.
struct GatherCall {
  int64_t blocks = 1, extent = 0, width = 1;
  int64_t count = 0;
  bool shared = false;  // all blocks have the same numbers

  // `whole` is the type of what is gathered from or scattered into.
  static GatherCall Of(const TensorType& whole, const TensorType& rows, int axis) {
    GatherCall call;
    for (int i = 0; i < axis; ++i) call.blocks *= whole.shape[i];
    for (int i = axis + 1; i < whole.shape.rank(); ++i) call.width *= whole.shape[i];
    call.extent = whole.shape[axis];
    call.count = rows.shape[-1];
    call.shared = rows.shape.rank() == 1;
    return call;
  }

  // Lists of numbers that differ.
  int64_t lists() const { return shared ? 1 : blocks; }
};

}  // namespace syntra
