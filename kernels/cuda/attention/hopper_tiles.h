// SPDX-License-Identifier: Apache-2.0
// The operands of attention on Hopper GPUs: they are copied in tiles of 64 columns, each to a stage
// of a ring in shared memory. One thread announces and starts the copies; warps wait for them. u
// and positions of 64 features are tiles, too (HopperServesProducts), and their scores are computed
// as those of queries and keys, except that all examples share the positions.
#pragma once

#include "kernels/cuda/attention/scores.h"
#include "kernels/cuda/hopper.h"

namespace syntra::attention {

constexpr int kNoTile = -1;  // instead of a place's first passing row: there are no more tiles

// Called by the thread that copies. Moves `place` to the next tile that is needed (FindNext), waits
// until the ring's next stage is empty, and leaves the tile's place there for the warps. Returns
// the barrier at which the tile's copies, of `bytes` together, must arrive, or null if there are no
// more tiles.
template <bool kOfKeys, int kStages>
__device__ __forceinline__ Barrier* AnnounceNext(const Terms<BFloat16>& terms, int b, int h,
                                                 int own_rows, Place& place, Ring<kStages>& ring,
                                                 Place (&places)[kStages],
                                                 const Turn<kStages>& turn, int bytes) {
  const bool more = FindNext<kOfKeys>(terms, b, h, own_rows, place);
  if (!more) place.passing = kNoTile;
  WaitFor(ring.empty[turn.stage], turn.parity ^ 1);
  places[turn.stage] = place;
  Barrier& full = ring.full[turn.stage];
  ArriveExpecting(full, more ? bytes : 0);
  return more ? &full : nullptr;
}

// Called by the warps that compute. Waits until a stage is full, and sets `place` to that of its
// tile. Returns false if there are no more tiles.
template <int kStages>
__device__ __forceinline__ bool WaitForTile(Ring<kStages>& ring, const Place (&places)[kStages],
                                            const Turn<kStages>& turn, Place& place) {
  WaitFor(ring.full[turn.stage], turn.parity);
  place = places[turn.stage];
  place.mask.pattern = false;  // there is none, which the compiler cannot know
  return place.passing != kNoTile;
}

// Reads the tiles of a ring one after the other. All lanes of a warp call it together.
template <int kStages>
class TileReader {
 public:
  __device__ TileReader(Ring<kStages>& ring, const Place (&places)[kStages])
      : ring_(ring), places_(places) {}

  // Waits for the next tile, and sets `place` to its place. Returns false if there is none.
  __device__ __forceinline__ bool Find(Place& place) {
    if (WaitForTile(ring_, places_, turn_, place)) return true;
    Release();
    return false;
  }
  // The stage of the tile found last.
  __device__ __forceinline__ int stage() const { return turn_.stage; }
  // Frees the stage. All lanes must have read its place, and the products that read it must be
  // complete.
  __device__ __forceinline__ void Release() {
    ArriveOnce(ring_.empty[turn_.stage]);
    turn_ = turn_.Next();
  }

 private:
  Ring<kStages>& ring_;
  const Place (&places_)[kStages];
  Turn<kStages> turn_;
};

// Stores the 16 rows that a warp has put to a tile (PutRows) to a result, whose first row is the
// first of them. All lanes must have put their elements before. Rows beyond the result's last are
// left out.
__device__ __forceinline__ void StoreRowsOfTile(const BFloat16* tile,
                                                const Target<BFloat16>& target) {
  const int column = LaneIndex() % 8 * kEight;
  BFloat16* to = target.to + column;
#pragma unroll
  for (int row = LaneIndex() / 8; row < 16; row += kWarp / 8) {
    const Eight values = LoadWholeEight(SwizzledAt(tile, row, column));
    if (row >= target.rows) continue;
    StoreResult(values, to + int64_t{row} * target.stride, kEight, target.accumulate);
  }
}

// A map of rows [examples, rows, columns], and where the rows of a head and an example are in it:
// at example b * batch_examples + h * head_examples, from column h * head_columns on.
struct MappedRows {
  TensorMap map;
  int head_columns;
  int head_examples = 0, batch_examples = 1;

  // Starts to copy the rows from `first` on. Tiles begin at multiples of 16 bytes (CopyTileAsync),
  // so elements of the head before may come first (ShiftOf).
  __device__ __forceinline__ void StartCopy(BFloat16* to, int b, int h, int first,
                                            Barrier& full) const {
    CopyTileAsync(to, map, h * head_columns - ShiftOf(h), first,
                  b * batch_examples + h * head_examples, full);
  }
  // Where a head's columns begin in its tile.
  __device__ __forceinline__ int ShiftOf(int h) const { return h * head_columns % kEight; }
};

// Whether scores are products of queries and keys, of u and positions, or both, in whole tiles,
// perhaps with a bias and a table. `inputs` are those of attention_grad, or begin with them.
inline bool HopperServesProducts(const Dimensions& z, std::span<const TensorType> inputs) {
  const bool dot = inputs[kQuery].present(), dense = inputs[kU].present();
  const bool tiles = !dense || (z.features == kColumns && !inputs[kKeyPositions].present());
  const bool others = inputs[kA].present() || inputs[kPrefixEnds].present() || z.IsSparse();
  return (dot || dense) && tiles && !others && inputs[kValue].dtype == DType::kBF16 &&
         z.head_size == kColumns;
}

// Maps the rows of an activation [B, rows, H * 64].
inline MappedRows MapRows(const Terms<BFloat16>& terms, const BFloat16* from, int64_t rows,
                          int64_t pitch, int tile_rows) {
  return {MapTiles({from, terms.batch, rows, terms.heads * kColumns, pitch}, tile_rows), kColumns};
}

// Maps the rows of the positions. `terms` are prepared (PreparedTerms).
inline MappedRows MapPositions(const Terms<BFloat16>& terms, int tile_rows) {
  const bool per_head = terms.positions_per_head;
  const MappedTensor rows{terms.position_rows, per_head ? terms.heads : 1, terms.position_extent,
                          kColumns, kColumns};
  return {MapTiles(rows, tile_rows), 0, per_head ? 1 : 0, 0};
}

}  // namespace syntra::attention
