// SPDX-License-Identifier: Apache-2.0
// Matrix products in registers of AVX-512: up to 6 x 64 sums, to which for each word of k 4 vectors
// of a packed panel of B (pack.h) are added, multiplied with 6 words of A. A word is an f32, or two
// bf16 that follow each other in k. Included once per instruction set.
#if defined(SYNTRA_KERNELS_CPU_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_REGISTER_TILE_INL_H_
#undef SYNTRA_KERNELS_CPU_REGISTER_TILE_INL_H_
#else
#define SYNTRA_KERNELS_CPU_REGISTER_TILE_INL_H_
#endif

#include "kernels/cpu/pack.h"
#include "kernels/cpu/processor.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

#if SYNTRA_AVX512

// Whether the processor multiplies this type so.
HWY_INLINE bool HasRegisterTiles(DType type) {
  return type == DType::kF32 || kProcessor.avx512_bf16;
}

// Adds products of f32, or of pairs of bf16 (for which Highway 1.0 has no instruction).
template <bool kPairs>
HWY_INLINE FloatVector MultiplyAdd(FloatVector a, FloatVector b, FloatVector sum) {
  if constexpr (!kPairs) return hn::MulAdd(a, b, sum);
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// Where the words of kRows rows of A are: those of a strip (PanelLayout::kStrips) of kRows columns,
// or in the rows themselves, `stride` words apart.
template <int kRows>
struct StripWords {
  const float* strip;

  HWY_INLINE float operator()(int64_t word, int row) const { return strip[word * kRows + row]; }
};

struct RowWords {
  const std::byte* rows;
  int64_t stride;  // bytes

  HWY_INLINE float operator()(int64_t word, int row) const {
    float value;
    std::memcpy(&value, rows + row * stride + word * kWordBytes, sizeof(value));
    return value;
  }
};

// Where sums go.
template <typename T>
struct TileSums {
  T* c;
  int64_t stride;  // elements from one row to the next
  float alpha;
  bool accumulate;
};

// kRows rows and 64 columns of C = alpha A B (+ C), where B is a panel of `words` rows.
template <bool kPairs, int kRows, typename Words, typename T>
void RegisterTile(Words a, const float* b, int64_t words, const TileSums<T>& result) {
  constexpr int kVectors = kPanelColumns / 16;
  const FloatTag d;
  FloatVector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      sums[i][j] = hn::Zero(d);
      __builtin_prefetch(result.c + i * result.stride + 16 * j, 1);
    }
  }
  for (int64_t word = 0; word < words; ++word, b += kPanelColumns) {
    FloatVector row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + 16 * j);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const FloatVector factor = hn::Set(d, a(word, i));
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = MultiplyAdd<kPairs>(factor, row[j], sums[i][j]);
      }
    }
  }
  const FloatVector alpha = hn::Set(d, result.alpha);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      StoreResult(hn::Mul(alpha, sums[i][j]), result.c + i * result.stride + 16 * j, Whole(),
                  result.accumulate);
    }
  }
}

#else

HWY_INLINE bool HasRegisterTiles(DType) { return false; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
