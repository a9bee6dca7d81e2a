// SPDX-License-Identifier: Apache-2.0
// The operands of scores that are products of rows of 64 columns, as Hopper GPUs copy them: queries
// and keys, or u and the rows of positions (Terms::DenseAsProducts), which all examples share.
#pragma once

#include "kernels/cuda/attention_terms.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {

// A map of keys [examples, rows, columns], and where those of a head and an example are.
struct MappedKeys {
  TensorMap map;
  int head_columns, head_examples, batch_examples;  // from one head or example to the next

  // Starts to copy the rows from `first` on.
  __device__ __forceinline__ void StartCopy(BFloat16* to, int b, int h, int first,
                                            Barrier& full) const {
    CopyTileAsync(to, map, h * head_columns, first, b * batch_examples + h * head_examples, full);
  }
};

// `terms` are prepared (PreparedTerms).
inline MappedKeys MapKeys(const Terms<BFloat16>& terms, int tile_rows) {
  if (terms.key != nullptr) {
    const MappedTensor keys{terms.key, terms.batch, terms.keys, terms.heads * kColumns,
                            terms.key_pitch};
    return {MapTiles(keys, tile_rows), kColumns, 0, 1};
  }
  const bool per_head = terms.positions_per_head;
  const MappedTensor positions{terms.position_rows, per_head ? terms.heads : 1,
                               terms.position_extent, kColumns, kColumns};
  return {MapTiles(positions, tile_rows), 0, per_head ? 1 : 0, 0};
}

}  // namespace syntra::attention
