// SPDX-License-Identifier: Apache-2.0
// Scores of factors (Terms::a, Terms::b) on Hopper GPUs, in tiles of 64 keys. Key j reads elements
// j mod Na of a and j div Na of b. If Na divides 64, every tile begins with element 0 of a, which
// repeats Na keys later, and a run of Na keys shares its element of b. So scores and the gradients
// of factors take multiply-adds alone, no products with unit vectors.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/hopper_tiles.h"

namespace syntra::attention {

// The columns of a tile of b, in the layout of CopyTileAsync.
constexpr int64_t kMostFactorsB = kColumns;

// Whether Hopper GPUs have kernels for the scores of such a call: its factors, perhaps with a bias.
inline bool HopperServesFactors(const Dimensions& z, std::span<const TensorType> inputs) {
  // Of a map's rows. A head's columns of b begin up to seven columns later in its tile, and the
  // last tile of keys reads whole runs, up to three more than there are.
  constexpr int64_t kAligned = kCopyBytes / sizeof(BFloat16);
  for (const int other : {kQuery, kU, kTable, kKeyPositions, kPrefixEnds}) {
    if (inputs[other].present()) return false;
  }
  return inputs[kA].present() && inputs[kValue].dtype == DType::kBF16 && z.head_size == kColumns &&
         !z.IsSparse() && (z.a_size == 16 || z.a_size == 32) &&
         z.b_size <= (z.b_size % kAligned == 0 ? kMostFactorsB : kMostFactorsB - kAligned) &&
         z.heads * z.b_size % kAligned == 0;
}

// Calls body with Na of a call that HopperServesFactors.
template <typename Body>
void WithFactorSize(int64_t a_size, const Body& body) {
  if (a_size == 16) return body(std::integral_constant<int, 16>());
  body(std::integral_constant<int, 32>());
}

// The factors of a lane's two queries, which are rows of the scores. They stay in shared memory, in
// tiles of the block's queries: registers have no room for them. kSize: Na.
template <int kSize>
class RowFactors {
 public:
  static constexpr int kN = kSize / 8;  // fragments of a run

  // `a`, `b`: the tiles; `shift`: where the head's columns begin in that of b (MappedRows).
  __device__ __forceinline__ RowFactors(const BFloat16* a, const BFloat16* b, int shift)
      : a_(a), b_(b), shift_(shift) {}

  // Adds the products of the factors to the scores of the keys from `key` on, whole runs of them.
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

  // Adds the share of these keys to da. Calls store(place, sum) with the place of an element of db
  // in a tile and the lane's share of it.
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
  // Where the lane's rows are in a tile: an upper one and, a whole period of the layout further on,
  // a lower one. The compiler does not know the row, so that it keeps nothing that depends on it in
  // registers from one tile to the next.
  class LanePlace {
   public:
    __device__ __forceinline__ LanePlace() {
      int row = WarpIndex() * 16 + FragmentRow(0);
      Forget(row);
      first_ = row * kMappedColumns;
      swizzle_ = row & 7;  // which is positive, as the compiler does not know either
    }
    // Where an element of a column is in the upper or lower row, as by SwizzledAt.
    __device__ __forceinline__ int Of(int half, int column) const {
      return OfPiece(half, column >> 3) + (column & 7);
    }
    // Where the first of eight columns is in the upper or lower row.
    __device__ __forceinline__ int OfPiece(int half, int piece) const {
      return first_ + half * 8 * kMappedColumns + (piece ^ swizzle_) * kEight;
    }

   private:
    int first_, swizzle_;
  };

  // Two elements of a, those of the lane's columns of fragment n.
  __device__ __forceinline__ uint32_t PairOfA(const LanePlace& place, int half, int n) const {
    return PairAt(a_ + place.OfPiece(half, n) + FragmentColumn(0));
  }
  __device__ __forceinline__ float B(const LanePlace& place, int half, int element) const {
    return ToFloat(b_[place.Of(half, shift_ + element)]);
  }

  const BFloat16 *a_, *b_;
  int shift_;
};

// The factors of the queries of a tile, which are columns of the scores. Rows are keys.
template <int kSize>
class ColumnFactors {
 public:
  // `a`, `b`: the tiles; `shift`: where the head's columns begin in that of b (MappedRows).
  __device__ __forceinline__ ColumnFactors(const BFloat16* a, const BFloat16* b, int shift)
      : a_(a), b_(b), shift_(shift) {}

  // Adds the products of the factors to the scores of a warp's 16 keys, of which `key` is the
  // first. Scores of keys beyond the last become any number.
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
  // From a fragment's queries to the next ones': eight rows, a whole period of the layout.
  static constexpr int kFragmentRows = 8 * kMappedColumns;

  // Where the lane's share of elements first..first + 15 of a, those of the keys, is for the
  // queries of two fragments. LoadMatricesTransposed then gives of each fragment a pair for the
  // lane's upper key and one for the lower.
  __device__ __forceinline__ const BFloat16* KeysOf(int first) const {
    const int matrix = LaneIndex() / 8, line = LaneIndex() % 8;
    return SwizzledAt(a_, line, first + matrix % 2 * 8) + matrix / 2 * kFragmentRows;
  }

  const BFloat16 *a_, *b_;
  int shift_;
};

// A map of a or b, [B, T, heads * size]. A tile has the head's elements, and those of the heads
// after it up to 64 columns.
inline MappedRows MapFactors(const Terms<BFloat16>& terms, const BFloat16* from, int64_t size,
                             int tile_rows) {
  const int64_t columns = terms.heads * size;
  return {MapTiles({from, terms.batch, terms.queries, columns, columns}, tile_rows),
          static_cast<int>(size)};
}

}  // namespace syntra::attention
