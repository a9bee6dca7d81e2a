// SPDX-License-Identifier: Apache-2.0
// Scores of factors (Terms::a, Terms::b) on Hopper GPUs, in tiles of 64 keys. Key j reads elements
// j mod Na of a and j div Na of b. If Na divides 64, every tile begins with element 0 of a, which
// repeats Na keys later, and a run of Na keys shares its element of b. So scores and the gradients
// of factors take multiply-adds alone, no products with unit vectors.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/products.h"

namespace syntra::attention {

// The columns of a tile of b, in the layout of CopyTileAsync.
constexpr int64_t kMostFactorsB = kColumns;

// Whether Hopper GPUs have kernels for the scores of such a call: its factors, perhaps with a bias.
inline bool HopperServesFactors(const Dimensions& z, std::span<const TensorType> inputs) {
  constexpr int64_t kAligned = kCopyBytes / sizeof(BFloat16);  // of a map's rows
  for (const int other : {kQuery, kU, kTable, kKeyPositions, kPrefixEnds}) {
    if (inputs[other].present()) return false;
  }
  return inputs[kA].present() && inputs[kValue].dtype == DType::kBF16 && z.head_size == kColumns &&
         !z.IsSparse() && (z.a_size == 16 || z.a_size == 32) &&
         z.b_size <= (z.b_size % kAligned == 0 ? kMostFactorsB : kMostFactorsB - kAligned + 1) &&
         z.heads * z.b_size % kAligned == 0;
}

// Calls body with Na of a call that HopperServesFactors.
template <typename Body>
void WithFactorSize(int64_t a_size, const Body& body) {
  if (a_size == 16) return body(std::integral_constant<int, 16>());
  body(std::integral_constant<int, 32>());
}

__device__ __forceinline__ float LowerOf(uint32_t pair) {
  return ToFloat(BFloat16{static_cast<uint16_t>(pair)});
}
__device__ __forceinline__ float UpperOf(uint32_t pair) {
  return ToFloat(BFloat16{static_cast<uint16_t>(pair >> 16)});
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
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float b[kFragments / kN];
      for (int run = 0; run < std::ssize(b); ++run) b[run] = B(half, key / kSize + run);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint32_t pair = PairOfA(half, n);
#pragma unroll
        for (int run = 0; run < std::ssize(b); ++run) {
          float(&sum)[4] = scores[run * kN + n].sum;
          sum[2 * half] = fmaf(LowerOf(pair), b[run], sum[2 * half]);
          sum[2 * half + 1] = fmaf(UpperOf(pair), b[run], sum[2 * half + 1]);
        }
      }
    }
  }

  // Adds the share of these keys to da. Calls store(row, run, sum) with the warp's row of the tile,
  // the number of the element of b, and the lane's share of its gradient.
  template <int kFragments, typename Store>
  __device__ __forceinline__ void AddGradients(const Fragment (&d_scores)[kFragments], int key,
                                               Fragment (&of_a)[kN], const Store& store) const {
    static_assert(kFragments % kN == 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float b[kFragments / kN], of_b[kFragments / kN] = {};
      for (int run = 0; run < std::ssize(b); ++run) b[run] = B(half, key / kSize + run);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint32_t pair = PairOfA(half, n);
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
      for (int run = 0; run < std::ssize(b); ++run) store(Row(half), key / kSize + run, of_b[run]);
    }
  }

 private:
  __device__ __forceinline__ static int Row(int half) {
    return WarpIndex() * 16 + FragmentRow(2 * half);
  }
  // Two elements of a, those of the lane's columns of fragment n.
  __device__ __forceinline__ uint32_t PairOfA(int half, int n) const {
    return PairAt(At(a_, half, 8 * n + FragmentColumn(0)));
  }
  __device__ __forceinline__ float B(int half, int element) const {
    return ToFloat(*At(b_, half, shift_ + element));
  }
  // An element of the lane's upper or lower row, which is eight rows, and so a whole period of the
  // layout, further on.
  __device__ __forceinline__ static const BFloat16* At(const BFloat16* tile, int half, int column) {
    return SwizzledAt(tile, Opaque(Row(0)), column) + half * 8 * kColumns;
  }
  // The compiler does not know the result, so it keeps no addresses that depend on it in registers
  // from one tile to the next.
  __device__ __forceinline__ static int Opaque(int value) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(value));
#endif
    return value;
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
#pragma unroll
    for (int n = 0; n < kFragments; n += 2) {
      uint32_t pairs[4];
      LoadKeys(n, key % kSize, pairs);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const int row = 8 * (n + m) + FragmentColumn(0);
        const float b[] = {ToFloat(*SwizzledAt(b_, row, element)),
                           ToFloat(*SwizzledAt(b_, row + 1, element))};
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
  // Loads elements first..first + 15 of a, those of the keys, for the queries of fragments n and
  // n + 1: of each fragment a pair for the lane's upper key and one for the lower.
  __device__ __forceinline__ void LoadKeys(int n, int first, uint32_t (&pairs)[4]) const {
    const int matrix = LaneIndex() / 8, line = LaneIndex() % 8;
    const int row = 8 * (n + matrix / 2) + line;
    LoadMatricesTransposed(pairs, SwizzledAt(a_, row, first + matrix % 2 * 8));
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
