// SPDX-License-Identifier: Apache-2.0
// Random masks: word e % 4 of RandomAt(key, e / 4, site) decides whether element e of a row is
// kept.
#if defined(SYNTRA_KERNELS_CPU_NOISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_NOISE_INL_H_
#undef SYNTRA_KERNELS_CPU_NOISE_INL_H_
#else
#define SYNTRA_KERNELS_CPU_NOISE_INL_H_
#endif

#include "core/philox-inl.h"
#include "kernels/cpu/shared_noise.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/math/random_mask.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// Generates words [first, first + count) of a row's noise, at most kBlock of them.
class NoiseWords {
 public:
  static constexpr int64_t kBlock = 512;

  // The words, valid until the next call. A whole vector may be read at any of them.
  HWY_INLINE const uint32_t* Fill(RandomKey key, uint64_t site, int64_t first, int64_t count) {
    stream_.SetKey(key);
    const int64_t skipped = first % 4;
    for (int64_t i = 0; i < skipped + count; i += PhiloxStream::kWords) {
      stream_.Generate(static_cast<uint64_t>((first - skipped + i) / 4), site, words_ + i);
    }
    return words_ + skipped;
  }

 private:
  PhiloxStream stream_;
  alignas(64) uint32_t words_[kBlock + 128];
};

// Scales the elements that the words keep and sets the others to zero.
HWY_INLINE FloatVector KeepScaled(FloatVector value, const uint32_t* words, const Keep& keep) {
  const FloatTag d;
  const WordTag d32;
  const auto dropped = hn::Lt(hn::LoadU(d32, words), hn::Set(d32, keep.threshold));
  return hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Mul(value, hn::Set(d, keep.scale)));
}

// Writes to `words` the noise that all rows of an example share: `width` words per example, padded
// so that whole vectors may be read.
inline void FillSharedNoise(const int32_t* keys, uint64_t site, int64_t examples, int64_t width,
                            uint32_t* words) {
  const int64_t stride = SharedNoiseStride(width);
  ParallelFor(examples, RowGrain(width), [&](int64_t begin, int64_t end) {
    NoiseWords noise;
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < width; i += NoiseWords::kBlock) {
        const int64_t count = std::min(NoiseWords::kBlock, width - i);
        std::memcpy(words + b * stride + i, noise.Fill(RowKey(&keys[2 * b]), site, i, count),
                    count * sizeof(uint32_t));
      }
    }
  });
}

// Calls body(element, draws, words) for pieces of at most NoiseWords::kBlock draws of a position,
// which cover the tensor; `element` is the first of a piece.
template <typename Body>
HWY_INLINE void ForEachMaskedPiece(const TensorMask& mask, const int32_t* keys,
                                   std::byte* workspace, const Body& body) {
  const int64_t draws = mask.draws(), stride = SharedNoiseStride(draws);
  auto* shared = reinterpret_cast<uint32_t*>(workspace);
  if (!mask.per_element) FillSharedNoise(keys, mask.site, mask.examples, draws, shared);
  ParallelFor(
      mask.examples * mask.positions, RowGrain(mask.width), [&](int64_t begin, int64_t end) {
        NoiseWords noise;
        for (int64_t row = begin; row < end; ++row) {
          const int64_t b = row / mask.positions, t = row % mask.positions;
          for (int64_t i = 0; i < draws; i += NoiseWords::kBlock) {
            const int64_t count = std::min(NoiseWords::kBlock, draws - i);
            const uint32_t* words =
                mask.per_element ? noise.Fill(RowKey(&keys[2 * b]), mask.site, t * draws + i, count)
                                 : shared + b * stride + i;
            body(row * mask.width + i * mask.group, count, words);
          }
        }
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
