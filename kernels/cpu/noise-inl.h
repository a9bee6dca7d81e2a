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

// The noise of a tensor's rows, which keep theirs in `shared` where all positions share it.
class RowNoise {
 public:
  RowNoise(const TensorMask& mask, const int32_t* keys, const uint32_t* shared)
      : mask_(mask), keys_(keys), shared_(shared) {}

  // Words [first, first + count) of a row's draws, as of NoiseWords.
  HWY_INLINE const uint32_t* Words(int64_t row, int64_t first, int64_t count) {
    const int64_t b = row / mask_.positions;
    if (!mask_.per_element) return shared_ + b * SharedNoiseStride(mask_.draws) + first;
    return words_.Fill(RowKey(&keys_[2 * b]), mask_.site, mask_.FirstDraw(row) + first, count);
  }

 private:
  const TensorMask& mask_;
  const int32_t* keys_;
  const uint32_t* shared_;
  NoiseWords words_;
};

// Writes the noise that the rows of an example share to `shared`, if they do: a word for each draw,
// padded so that whole vectors may be read.
inline void FillSharedNoise(const TensorMask& mask, const int32_t* keys, uint32_t* shared) {
  if (mask.per_element) return;
  const int64_t stride = SharedNoiseStride(mask.draws);
  ParallelFor(mask.examples, RowGrain(mask.draws), [&](int64_t begin, int64_t end) {
    NoiseWords noise;
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < mask.draws; i += NoiseWords::kBlock) {
        const int64_t count = std::min(NoiseWords::kBlock, mask.draws - i);
        std::memcpy(shared + b * stride + i, noise.Fill(RowKey(&keys[2 * b]), mask.site, i, count),
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
  auto* shared = reinterpret_cast<uint32_t*>(workspace);
  FillSharedNoise(mask, keys, shared);
  ParallelFor(mask.examples * mask.positions, RowGrain(mask.width),
              [&](int64_t begin, int64_t end) {
                RowNoise noise(mask, keys, shared);
                for (int64_t row = begin; row < end; ++row) {
                  for (int64_t i = 0; i < mask.draws; i += NoiseWords::kBlock) {
                    const int64_t count = std::min(NoiseWords::kBlock, mask.draws - i);
                    body(row * mask.width + i * mask.group, count, noise.Words(row, i, count));
                  }
                }
              });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
