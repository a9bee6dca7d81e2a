// Products of small tiles in shared memory by one warp: bf16 on tensor cores, f32 in IEEE f32.
#pragma once

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
// section of the PTX ISA).
struct MmaOperands {
  uint32_t a[4], b[2];
};

// c += A B.
__device__ __forceinline__ void Mma(Fragment& c, const MmaOperands& in) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.sum[0]), "+f"(c.sum[1]), "+f"(c.sum[2]), "+f"(c.sum[3])
      : "r"(in.a[0]), "r"(in.a[1]), "r"(in.a[2]), "r"(in.a[3]), "r"(in.b[0]), "r"(in.b[1]));
#else
  const std::byte* slots = simt::Exchange(kAllLanes, &in, sizeof(in));
  const auto element = [&](bool of_b, int line, int k) {
    MmaOperands lane;
    std::memcpy(&lane, slots + (line % 8 * 4 + k % 8 / 2) * simt::kSlotBytes, sizeof(lane));
    const uint32_t pair = of_b ? lane.b[k / 8] : lane.a[line / 8 + k / 8 * 2];
    return ToFloat(BFloat16{static_cast<uint16_t>(k % 2 == 0 ? pair : pair >> 16)});
  };
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) {
      c.sum[i] += element(false, FragmentRow(i), k) * element(true, FragmentColumn(i), k);
    }
  }
#endif
}

// Elements from one row of a shared tile to the next: as many as the tile has columns and eight
// more, so that the lanes of a fragment meet different banks.
constexpr int SharedStride(int columns) { return columns + 8; }

__device__ __forceinline__ uint32_t PairAt(const BFloat16* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}

// c[n] += A B[8 n .. 8 n + 8]^T: 16 rows of A and 8 kColumns rows of B, both `depth` elements long
// (a multiple of 16) and `a_stride`, `b_stride` apart.
template <int kColumns>
__device__ __forceinline__ void AddProduct(Fragment (&c)[kColumns], const BFloat16* a, int a_stride,
                                           const BFloat16* b, int b_stride, int depth) {
  const int line = LaneIndex() / 4, pair = LaneIndex() % 4 * 2;
  for (int k = pair; k < depth; k += 16) {
    MmaOperands in;
    in.a[0] = PairAt(a + line * a_stride + k);
    in.a[1] = PairAt(a + (line + 8) * a_stride + k);
    in.a[2] = PairAt(a + line * a_stride + k + 8);
    in.a[3] = PairAt(a + (line + 8) * a_stride + k + 8);
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      in.b[0] = PairAt(b + (8 * n + line) * b_stride + k);
      in.b[1] = PairAt(b + (8 * n + line) * b_stride + k + 8);
      Mma(c[n], in);
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
