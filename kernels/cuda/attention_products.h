// SPDX-License-Identifier: Apache-2.0
// The operands of attention as Hopper GPUs copy them, in tiles of 64 columns. Where u and positions
// are tiles (Terms::AreTileProducts), their scores are as those of queries and keys, but all
// examples share the positions.
#pragma once

#include "kernels/cuda/attention_terms.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {

// A map of rows [examples, rows, columns], and where those of a head and an example are.
struct MappedRows {
  TensorMap map;
  int head_columns;  // from a head to the next
  int head_examples = 0, batch_examples = 1;

  // Starts to copy the rows from `first` on, from the multiple of 16 bytes before the head's
  // columns on (ColumnsOfB).
  __device__ __forceinline__ void StartCopy(BFloat16* to, int b, int h, int first,
                                            Barrier& full) const {
    const int column = h * head_columns / kEight * kEight;
    CopyTileAsync(to, map, column, first, b * batch_examples + h * head_examples, full);
  }
};

// Those of an activation [B, rows, H * 64].
inline MappedRows MapRows(const Terms<BFloat16>& terms, const BFloat16* from, int64_t rows,
                          int64_t pitch, int tile_rows) {
  return {MapTiles({from, terms.batch, rows, terms.heads * kColumns, pitch}, tile_rows), kColumns};
}

// Those of positions. `terms` are prepared (PreparedTerms).
inline MappedRows MapPositions(const Terms<BFloat16>& terms, int tile_rows) {
  const bool per_head = terms.positions_per_head;
  const MappedTensor rows{terms.position_rows, per_head ? terms.heads : 1, terms.position_extent,
                          kColumns, kColumns};
  return {MapTiles(rows, tile_rows), 0, per_head ? 1 : 0, 0};
}

}  // namespace syntra::attention
