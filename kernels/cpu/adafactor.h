// SPDX-License-Identifier: Apache-2.0
// The dimensions and tensors of one Adafactor update. A factored parameter is treated as O matrices
// of A rows and B columns (its last two axes), any other as a vector of elements.
#pragma once

#include "kernels/cpu/reduction_blocks.h"
#include "kernels/workspace.h"

namespace syntra {

struct AdafactorMatrices {
  int64_t matrices, rows, columns;  // O, A, B
  // Whether the op's `row`, whose mean normalises the estimate, has one entry per column (not row).
  bool normalised_by_columns;

  RowBlocks blocks() const { return RowBlocks::Of(rows); }
  int64_t block_count() const { return matrices * blocks().count; }
};

// Offsets into the workspace of a factored update.
struct AdafactorLayout {
  size_t column_sums, row_sums, row_factors, column_factors, squares, bytes;

  explicit AdafactorLayout(const AdafactorMatrices& m) {
    WorkspaceLayout layout;
    column_sums = layout.PlaceFloats(m.block_count() * m.columns);
    row_sums = layout.PlaceFloats(m.matrices * m.rows);
    row_factors = layout.PlaceFloats(m.matrices * m.rows);
    column_factors = layout.PlaceFloats(m.matrices * m.columns);
    squares = layout.Place(2 * m.block_count() * sizeof(double));
    bytes = layout.bytes();
  }
};

// Operands by number (kernels/ops/adafactor.cc); kRow and kColumn of a factored update.
namespace adafactor {
enum InputNumber { kGradient, kHyper };
enum OutputNumber { kParameter, kFull, kRow = kFull, kColumn };
}  // namespace adafactor

// The tensors of an update; those that it does not have are null.
struct AdafactorTensors {
  const float* gradient;
  float* p;
  float* average = nullptr;  // unless it is factored
  // The averages with one entry for each row, and for each column, of the matrices.
  float *row_average = nullptr, *column_average = nullptr;
};

}  // namespace syntra
