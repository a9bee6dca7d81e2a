// SPDX-License-Identifier: Apache-2.0
// Products of small tiles in shared memory by one warp. bf16 uses tensor cores, f32 IEEE f32
// arithmetic.
#pragma once

#include "kernels/cuda/gpu.h"

namespace syntra::gpu {

// A lane's elements of a 16 x 8 tile of sums: rows lane / 4 and lane / 4 + 8, columns
// 2 * (lane % 4) and the next, in row-major order (PTX ISA, mma.m16n8k16, fragment of C).
struct Fragment {
  float sum[4];
};
__device__ __forceinline__ int FragmentRow(int i) { return LaneIndex() / 4 + i / 2 * 8; }
__device__ __forceinline__ int FragmentColumn(int i) { return LaneIndex() % 4 * 2 + i % 2; }

// A lane's elements of A [16, 16] and B [16, 8], as pairs of bf16 along the inner dimension (same
// section of the PTX ISA). Pair r of A is in row lane / 4 + r % 2 * 8 and has inner elements
// 2 * (lane % 4) + r / 2 * 8 and the next. Pair r of B is in column lane / 4 and has inner elements
// 2 * (lane % 4) + r * 8 and the next.
struct FragmentA {
  uint32_t pair[4];
};
struct FragmentB {
  uint32_t pair[2];
};

// c += A B.
__device__ __forceinline__ void Mma(Fragment& c, const FragmentA& a, const FragmentB& b) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.sum[0]), "+f"(c.sum[1]), "+f"(c.sum[2]), "+f"(c.sum[3])
      : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b.pair[0]),
        "r"(b.pair[1]));
#else
  simt::MultiplyMatrices(c.sum, a.pair, b.pair);
#endif
}

__device__ __forceinline__ uint32_t PairAt(const BFloat16* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}

// Loads four 8 x 8 matrices from shared memory (PTX ISA, ldmatrix). Lane 8 q + r passes the address
// of row r of matrix q, which has eight elements and is aligned to 16 bytes. Afterwards a lane's
// pair q holds elements 2 * (lane % 4) and the next of row lane / 4 of matrix q.
__device__ __forceinline__ void LoadMatrices(uint32_t (&pair)[4], const BFloat16* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pair[0]), "=r"(pair[1]), "=r"(pair[2]), "=r"(pair[3])
               : "r"(SharedAddress(row))
               : "memory");
#else
  simt::LoadMatrices(pair, row, false);
#endif
}

// As LoadMatrices, for the matrices' transposes: a lane gets elements of column lane / 4 in rows
// 2 * (lane % 4) and the next.
__device__ __forceinline__ void LoadMatricesTransposed(uint32_t (&pair)[4], const BFloat16* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pair[0]), "=r"(pair[1]), "=r"(pair[2]), "=r"(pair[3])
               : "r"(SharedAddress(row))
               : "memory");
#else
  simt::LoadMatrices(pair, row, true);
#endif
}

// Loads 16 outer by 16 inner elements of an operand from shared memory: the pairs of a FragmentA or
// of two FragmentB. `tile` is the first element. Inner elements are contiguous and outer ones
// `stride` apart; with `kAcross` it is the other way round.
template <bool kOfA, bool kAcross>
__device__ __forceinline__ void LoadOperand(const BFloat16* tile, int stride, uint32_t (&pair)[4]) {
  const int matrix = LaneIndex() / 8, line = LaneIndex() % 8;
  const int outer = (kOfA ? matrix % 2 : matrix / 2) * 8;
  const int inner = (kOfA ? matrix / 2 : matrix % 2) * 8;
  if constexpr (kAcross) {
    LoadMatricesTransposed(pair, tile + (inner + line) * stride + outer);
  } else {
    LoadMatrices(pair, tile + (outer + line) * stride + inner);
  }
}

__device__ __forceinline__ uint32_t PairOf(float first, float second) {
#if defined(__CUDACC__)
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
#else
  return uint32_t{ToBFloat16(first).bits} | uint32_t{ToBFloat16(second).bits} << 16;
#endif
}

__device__ __forceinline__ float LowerOf(uint32_t pair) {
  return ToFloat(BFloat16{static_cast<uint16_t>(pair)});
}
__device__ __forceinline__ float UpperOf(uint32_t pair) {
  return ToFloat(BFloat16{static_cast<uint16_t>(pair >> 16)});
}

// Converts sums of 16 rows and twice 8 columns to operand A of a product over those columns.
__device__ __forceinline__ FragmentA RowsOf(const Fragment& left, const Fragment& right) {
  return {PairOf(left.sum[0], left.sum[1]), PairOf(left.sum[2], left.sum[3]),
          PairOf(right.sum[0], right.sum[1]), PairOf(right.sum[2], right.sum[3])};
}

// The rounded sums of which RowsOf made `rows`: those of the left 8 columns or, if `half` is 1, of
// the right ones.
__device__ __forceinline__ Fragment SumsOf(const FragmentA& rows, int half) {
  const uint32_t upper = rows.pair[2 * half], lower = rows.pair[2 * half + 1];
  return {LowerOf(upper), UpperOf(upper), LowerOf(lower), UpperOf(lower)};
}

}  // namespace syntra::gpu
