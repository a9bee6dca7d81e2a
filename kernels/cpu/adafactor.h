// SPDX-License-Identifier: Apache-2.0
// One Adafactor update, resolved: a parameter seen as O matrices of A rows and B columns, factored
// over the last two axes, or as one run of elements.
#pragma once

#include <cmath>

#include "core/buffer.h"
#include "kernels/cpu/blocks.h"

namespace syntra {

inline constexpr float kAdafactorSquareFloor = 1e-30f;

struct AdafactorMatrices {
  int64_t matrices, rows, columns;  // O, A, B
  // Whether the op's `row`, whose mean normalises the estimate, has an entry per column here.
  bool normalised_by_columns;

  RowBlocks blocks() const { return RowBlocks::Of(rows); }
  int64_t block_count() const { return matrices * blocks().count; }
};

// Offsets into the workspace of a factored update.
struct AdafactorLayout {
  size_t column_sums, row_sums, row_factors, column_factors, squares, bytes;

  static AdafactorLayout Of(const AdafactorMatrices& m) {
    AdafactorLayout layout{};
    size_t offset = 0;
    const auto place = [&offset](int64_t count, size_t size) {
      const size_t start = offset;
      offset = AlignUp(offset + static_cast<size_t>(count) * size);
      return start;
    };
    layout.column_sums = place(m.block_count() * m.columns, sizeof(float));
    layout.row_sums = place(m.matrices * m.rows, sizeof(float));
    layout.row_factors = place(m.matrices * m.rows, sizeof(float));
    layout.column_factors = place(m.matrices * m.columns, sizeof(float));
    layout.squares = place(2 * m.block_count(), sizeof(double));
    layout.bytes = offset;
    return layout;
  }
};

struct AdafactorHyper {
  double rate, beta2, clip_threshold;
  float gradient_scale;
};

// p -= step * x: what clipping and the parameter's own scale leave of the rate.
inline float AdafactorStep(const AdafactorHyper& hyper, double x_squares, double p_squares,
                           int64_t count) {
  const auto size = static_cast<double>(count);
  const double clip = std::max(1.0, std::sqrt(x_squares / size) / hyper.clip_threshold);
  return static_cast<float>(hyper.rate * std::max(std::sqrt(p_squares / size), 1e-3) / clip);
}

}  // namespace syntra
