// SPDX-License-Identifier: Apache-2.0
// Scores of factors (Terms::a, Terms::b) on Hopper GPUs. The score of query i and key j is
//
//   a[i, j mod Na] * b[i, j div Na]
//
// A run of Na keys shares one element of b, and the elements of a repeat from run to run. If Na
// divides 64, each tile of 64 keys consists of whole runs. For Na = 16:
//
//   key           0 .. 15   16 .. 31   32 .. 47   48 .. 63   64 .. 79
//   element of a  0 .. 15    0 .. 15    0 .. 15    0 .. 15    0 .. 15
//   element of b     0          1          2          3          4
//                 |------------- a tile of keys ---------|
//
// So scores and the gradients of a and b take multiply-adds of elements alone, where other kernels
// compute products with unit vectors. In registers a run of Na keys is kN = Na / 8 fragments.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/hopper_tiles.h"

namespace syntra::attention {

// The columns of a tile of b (CopyTileAsync).
constexpr int64_t kMostFactorsB = kColumns;

// Whether Hopper GPUs have kernels for the scores of this call: factors, perhaps with a bias.
inline bool HopperServesFactors(const Dimensions& z, std::span<const TensorType> inputs) {
  // Tiles are copied from multiples of 16 bytes, so up to seven columns of the head before come
  // first in a tile of b. The last tile of keys reads whole runs, up to three more than there are.
  // All of these must fit into the tile's columns.
  constexpr int64_t kAligned = kCopyBytes / sizeof(BFloat16);
  for (const int other : {kQuery, kU, kTable, kKeyPositions, kPrefixEnds}) {
    if (inputs[other].present()) return false;
  }
  return inputs[kA].present() && inputs[kValue].dtype == DType::kBF16 && z.head_size == kColumns &&
         !z.IsSparse() && (z.a_size == 16 || z.a_size == 32) &&
         z.b_size <= (z.b_size % kAligned == 0 ? kMostFactorsB : kMostFactorsB - kAligned) &&
         z.heads * z.b_size % kAligned == 0;
}

// Calls body with Na, as a constant, of a call that HopperServesFactors.
template <typename Body>
void WithFactorSize(int64_t a_size, const Body& body) {
  if (a_size == 16) return body(std::integral_constant<int, 16>());
  body(std::integral_constant<int, 32>());
}

// In the forward pass and the pass over queries: the factors of a lane's two queries, an upper and
// a lower row of the warp's 16 rows of scores. They are read from the tiles of the block's queries
// in shared memory each time, because registers have no room for them. kSize: Na.
template <int kSize>
class RowFactors {
 public:
  static constexpr int kN = kSize / 8;  // fragments of a run

  // `a`, `b`: the tiles of the block's queries; `shift`: the first column of the head in that of b
  // (MappedRows::ShiftOf).
  __device__ __forceinline__ RowFactors(const BFloat16* a, const BFloat16* b, int shift)
      : a_(a), b_(b), shift_(shift) {}

  // Adds the products of the factors to the scores of whole runs of keys, the first of which is
  // `key`. Fragment run * kN + n has keys 8 n to 8 n + 7 of a run.
  template <int kFragments>
  __device__ __forceinline__ void AddTo(Fragment (&scores)[kFragments], int key) const {
    static_assert(kFragments % kN == 0);
    const LanePlace place;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float b[kFragments / kN];
      for (int run = 0; run < std::ssize(b); ++run) b[run] = B(place, half, key / kSize + run);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint32_t pair = PairOfA(place, half, n);
#pragma unroll
        for (int run = 0; run < std::ssize(b); ++run) {
          float(&sum)[4] = scores[run * kN + n].sum;
          sum[2 * half] = fmaf(LowerOf(pair), b[run], sum[2 * half]);
          sum[2 * half + 1] = fmaf(UpperOf(pair), b[run], sum[2 * half + 1]);
        }
      }
    }
  }

  // For the same keys, from the gradients of their scores: adds the lane's shares of da to `of_a`,
  // and calls store(place, share) with the lane's share of each element of db. `place` is where
  // that element is in a tile of the layout of b. Four lanes have shares of the same elements.
  template <int kFragments, typename Store>
  __device__ __forceinline__ void AddGradients(const Fragment (&d_scores)[kFragments], int key,
                                               Fragment (&of_a)[kN], const Store& store) const {
    static_assert(kFragments % kN == 0);
    const LanePlace place;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float b[kFragments / kN], of_b[kFragments / kN] = {};
      for (int run = 0; run < std::ssize(b); ++run) b[run] = B(place, half, key / kSize + run);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint32_t pair = PairOfA(place, half, n);
        float(&sum)[4] = of_a[n].sum;
#pragma unroll
        for (int run = 0; run < std::ssize(b); ++run) {
          const float(&gradient)[4] = d_scores[run * kN + n].sum;
          sum[2 * half] = fmaf(gradient[2 * half], b[run], sum[2 * half]);
          sum[2 * half + 1] = fmaf(gradient[2 * half + 1], b[run], sum[2 * half + 1]);
          of_b[run] = fmaf(gradient[2 * half], LowerOf(pair), of_b[run]);
          of_b[run] = fmaf(gradient[2 * half + 1], UpperOf(pair), of_b[run]);
        }
      }
#pragma unroll
      for (int run = 0; run < std::ssize(b); ++run) {
        store(place.Of(half, key / kSize + run), of_b[run]);
      }
    }
  }

 private:
  // Where elements of the lane's two rows are in a tile of a or b, whose layout is that of
  // SwizzledAt. The layout repeats every eight rows, so the lower row is a fixed distance from the
  // upper one. The row is hidden from the compiler (Forget), which otherwise would keep addresses
  // in registers from one tile to the next.
  class LanePlace {
   public:
    __device__ __forceinline__ LanePlace() {
      int row = WarpIndex() * 16 + FragmentRow(0);
      Forget(row);
      first_ = row * kMappedColumns;
      swizzle_ = row & 7;  // row % 8, but the compiler no longer knows that row is not negative
    }
    // The place of a column in the upper row (half 0) or the lower one (half 1).
    __device__ __forceinline__ int Of(int half, int column) const {
      return OfPiece(half, column >> 3) + (column & 7);
    }
    // The same, of the first of the eight columns of a piece.
    __device__ __forceinline__ int OfPiece(int half, int piece) const {
      return first_ + half * 8 * kMappedColumns + (piece ^ swizzle_) * kEight;
    }

   private:
    int first_, swizzle_;
  };

  // The two elements of a that belong to the lane's two columns of fragment n of a run.
  __device__ __forceinline__ uint32_t PairOfA(const LanePlace& place, int half, int n) const {
    return PairAt(a_ + place.OfPiece(half, n) + FragmentColumn(0));
  }
  __device__ __forceinline__ float B(const LanePlace& place, int half, int element) const {
    return ToFloat(b_[place.Of(half, shift_ + element)]);
  }

  const BFloat16 *a_, *b_;
  int shift_;
};

// In the pass over keys: the factors of the queries of a tile. Queries are columns of the scores
// here, and keys are rows.
template <int kSize>
class ColumnFactors {
 public:
  // `a`, `b`: the tiles of the queries; `shift`: the first column of the head in that of b
  // (MappedRows::ShiftOf).
  __device__ __forceinline__ ColumnFactors(const BFloat16* a, const BFloat16* b, int shift)
      : a_(a), b_(b), shift_(shift) {}

  // Adds the products of the factors to the scores of a warp's 16 keys, of which `key`, a multiple
  // of 16, is the first. They lie in one run, so they share an element of b. Scores of keys beyond
  // the last become any number.
  __device__ __forceinline__ void AddTo(Fragment (&scores)[kFragments], int key) const {
    const int there = shift_ + key / kSize;
    const int element = there < kMostFactorsB ? there : kMostFactorsB - 1;
    const BFloat16* of_keys = KeysOf(key % kSize);
    const BFloat16* of_runs[] = {SwizzledAt(b_, FragmentColumn(0), element),
                                 SwizzledAt(b_, FragmentColumn(1), element)};
#pragma unroll
    for (int n = 0; n < kFragments; n += 2) {
      uint32_t pairs[4];
      LoadMatricesTransposed(pairs, of_keys + n * kFragmentRows);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const float b[] = {ToFloat(of_runs[0][(n + m) * kFragmentRows]),
                           ToFloat(of_runs[1][(n + m) * kFragmentRows])};
        float(&sum)[4] = scores[n + m].sum;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t pair = pairs[2 * m + half];
          sum[2 * half] = fmaf(LowerOf(pair), b[0], sum[2 * half]);
          sum[2 * half + 1] = fmaf(UpperOf(pair), b[1], sum[2 * half + 1]);
        }
      }
    }
  }

 private:
  // From the queries of a fragment to those of the next: eight rows, after which the layout
  // repeats.
  static constexpr int kFragmentRows = 8 * kMappedColumns;

  // The address that this lane gives to LoadMatricesTransposed to load elements first..first + 15
  // of a, those of the 16 keys, for the queries of two fragments:
  //
  //   matrix   queries of       elements of a          gives pairs of queries for
  //   0, 1     fragment 0       first + 0..7, 8..15    the lane's upper key, its lower key
  //   2, 3     fragment 1       the same               the same
  __device__ __forceinline__ const BFloat16* KeysOf(int first) const {
    const int matrix = LaneIndex() / 8, line = LaneIndex() % 8;
    return SwizzledAt(a_, line, first + matrix % 2 * 8) + matrix / 2 * kFragmentRows;
  }

  const BFloat16 *a_, *b_;
  int shift_;
};

// A map of a or b, [B, T, heads * size], from which tiles of 64 columns are copied. A tile has the
// head's elements and, in the columns that are left, those of the heads next to it.
inline MappedRows MapFactors(const Terms<BFloat16>& terms, const BFloat16* from, int64_t size,
                             int tile_rows) {
  const int64_t columns = terms.heads * size;
  return {MapTiles({from, terms.batch, terms.queries, columns, columns}, tile_rows),
          static_cast<int>(size)};
}

}  // namespace syntra::attention
