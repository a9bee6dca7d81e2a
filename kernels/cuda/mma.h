// Products of small tiles in shared memory by one warp: bf16 on tensor cores, f32 in IEEE f32.
#pragma once

#include <array>

#include "kernels/cuda/gpu.h"

namespace syntra::gpu {

// A 16 x 8 tile of sums: the lane's are at rows lane / 4 and lane / 4 + 8, columns
// 2 * (lane % 4) and the next, in this order (PTX ISA, mma.m16n8k16, fragment of C).
struct Fragment {
  float sum[4];
};
__device__ __forceinline__ int FragmentRow(int i) { return LaneIndex() / 4 + i / 2 * 8; }
__device__ __forceinline__ int FragmentColumn(int i) { return LaneIndex() % 4 * 2 + i % 2; }

// The lane's elements of A [16, 16] and B [16, 8], pairs of bf16 along the inner dimension (same
// section of the PTX ISA). Pair r of A: row lane / 4 + r % 2 * 8, inner elements 2 * (lane % 4) +
// r / 2 * 8 and the next; pair r of B: column lane / 4, inner elements 2 * (lane % 4) + r * 8 and
// the next.
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
  const struct {
    FragmentA a;
    FragmentB b;
  } own = {a, b};
  const std::byte* slots = simt::Exchange(kAllLanes, &own, sizeof(own));
  // The 16 inner elements of a row of A or a column of B.
  const auto line = [&](bool of_b, int outer) {
    std::array<float, 16> elements;
    for (int lane = 0; lane < 4; ++lane) {
      auto in = own;
      std::memcpy(&in, slots + (outer % 8 * 4 + lane) * simt::kSlotBytes, sizeof(in));
      for (int half = 0; half < 2; ++half) {
        const uint32_t pair = of_b ? in.b.pair[half] : in.a.pair[outer / 8 + half * 2];
        elements[half * 8 + lane * 2] = ToFloat(BFloat16{static_cast<uint16_t>(pair)});
        elements[half * 8 + lane * 2 + 1] = ToFloat(BFloat16{static_cast<uint16_t>(pair >> 16)});
      }
    }
    return elements;
  };
  const std::array rows = {line(false, FragmentRow(0)), line(false, FragmentRow(2))};
  const std::array columns = {line(true, FragmentColumn(0)), line(true, FragmentColumn(1))};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) c.sum[i] += rows[i / 2][k] * columns[i % 2][k];
  }
#endif
}

__device__ __forceinline__ uint32_t PairAt(const BFloat16* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}

// Loads four 8 x 8 matrices from shared memory (PTX ISA, ldmatrix). Lane 8 q + r gives the address
// of row r of matrix q: eight elements, aligned to 16 bytes. The lane's pair q holds elements
// 2 * (lane % 4) and the next of row lane / 4 of matrix q.
__device__ __forceinline__ void LoadMatrices(uint32_t (&pair)[4], const BFloat16* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pair[0]), "=r"(pair[1]), "=r"(pair[2]), "=r"(pair[3])
               : "r"(SharedAddress(row))
               : "memory");
#else
  const simt::MatrixRows rows(row);
  for (int q = 0; q < 4; ++q) {
    pair[q] =
        PairAt(static_cast<const BFloat16*>(rows.At(q, LaneIndex() / 4)) + LaneIndex() % 4 * 2);
  }
#endif
}

// The same of the matrices' transposes: elements of column lane / 4, in rows 2 * (lane % 4) and the
// next.
__device__ __forceinline__ void LoadMatricesTransposed(uint32_t (&pair)[4], const BFloat16* row) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pair[0]), "=r"(pair[1]), "=r"(pair[2]), "=r"(pair[3])
               : "r"(SharedAddress(row))
               : "memory");
#else
  const simt::MatrixRows rows(row);
  for (int q = 0; q < 4; ++q) {
    const auto bits = [&](int line) {
      const auto* from = static_cast<const BFloat16*>(rows.At(q, line));
      return uint32_t{from[LaneIndex() / 4].bits};
    };
    pair[q] = bits(LaneIndex() % 4 * 2) | bits(LaneIndex() % 4 * 2 + 1) << 16;
  }
#endif
}

// Elements from one row of a shared tile to the next: as many as the tile has columns and eight
// more, so that the lanes of a fragment meet different banks.
constexpr int SharedStride(int columns) { return columns + 8; }

// c[n] += A B[8 n .. 8 n + 8]^T: 16 rows of A and 8 kColumns rows of B, both `depth` elements long
// (a multiple of 16) and `a_stride`, `b_stride` apart.
template <int kColumns>
__device__ __forceinline__ void AddProduct(Fragment (&c)[kColumns], const BFloat16* a, int a_stride,
                                           const BFloat16* b, int b_stride, int depth) {
  const int line = LaneIndex() / 4, pair = LaneIndex() % 4 * 2;
  for (int k = pair; k < depth; k += 16) {
    const FragmentA rows = {PairAt(a + line * a_stride + k), PairAt(a + (line + 8) * a_stride + k),
                            PairAt(a + line * a_stride + k + 8),
                            PairAt(a + (line + 8) * a_stride + k + 8)};
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const BFloat16* column = b + (8 * n + line) * b_stride + k;
      Mma(c[n], rows, {PairAt(column), PairAt(column + 8)});
    }
  }
}

template <int kColumns>
__device__ __forceinline__ void AddProduct(Fragment (&c)[kColumns], const float* a, int a_stride,
                                           const float* b, int b_stride, int depth) {
  for (int k = 0; k < depth; ++k) {
    const float top = a[FragmentRow(0) * a_stride + k], low = a[FragmentRow(2) * a_stride + k];
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      const float even = b[(8 * n + FragmentColumn(0)) * b_stride + k];
      const float odd = b[(8 * n + FragmentColumn(1)) * b_stride + k];
      c[n].sum[0] += top * even;
      c[n].sum[1] += top * odd;
      c[n].sum[2] += low * even;
      c[n].sum[3] += low * odd;
    }
  }
}

}  // namespace syntra::gpu
