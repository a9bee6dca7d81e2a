// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/bit_mask.h"

#include "core/simd_targets.h"
#include "kernels/bit_mask.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bit_mask.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

constexpr int64_t kWord = 64;  // elements whose bits are treated at once

// Elements by their bits, as integers: those of positive numbers are positive, and those of
// negative ones at most -infinity's. A NaN is above that; it counts as positive or not by its sign.
template <typename Body>
void WithBits(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) {
    body(int16_t{});
  } else {
    body(int32_t{});
  }
}

template <typename Bits>
HWY_INLINE void RectifyWord(Bits* in, uint64_t* word) {
  const hn::ScalableTag<Bits> d;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  constexpr auto kMinusInfinity = static_cast<Bits>(-128 * (Bits{1} << 8 * (sizeof(Bits) - 2)));
  for (int64_t k = 0; k < kWord; k += kLanes) {
    const auto bits = hn::LoadU(d, in + k);
    hn::StoreU(hn::IfThenElseZero(hn::Gt(bits, hn::Set(d, kMinusInfinity)), bits), d, in + k);
    if constexpr (kLanes % 8 == 0) {
      const auto positive = hn::Gt(bits, hn::Zero(d));
      hn::StoreMaskBits(d, positive, reinterpret_cast<uint8_t*>(word) + k / 8);
    }
  }
  if constexpr (kLanes % 8 != 0) {
    *word = 0;
    for (int64_t k = 0; k < kWord; ++k) *word |= uint64_t{in[k] > 0} << k;
  }
}

template <typename Bits>
HWY_INLINE void ApplyWord(uint64_t word, Bits* in) {
  const hn::ScalableTag<Bits> d;
  for (int64_t k = 0; k < kWord; k += hn::MaxLanes(d)) {
    const uint64_t bits = word >> k;
    const auto kept = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
    hn::StoreU(hn::IfThenElseZero(kept, hn::LoadU(d, in + k)), d, in + k);
  }
}

// Calls body(word, elements) for the words of a mask, or for any word if that is null, and the
// elements of a matrix that they are for. At the end of a row those are copies, with zeros after
// them, which are written back.
template <typename Word, typename Bits, typename Body>
HWY_INLINE void ForEachWord(const Shape& shape, Word* mask, Bits* matrix, const Body& body) {
  const int64_t columns = shape[-1], words = MaskStride(columns) * 8 / kWord;
  ParallelFor(shape.rows(), RowGrain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t w = 0; w < words; ++w) {
        const int64_t left = std::clamp<int64_t>(columns - w * kWord, 0, kWord);
        Bits* elements = matrix + row * columns + w * kWord;
        std::remove_const_t<Word> any;
        Word* word = mask != nullptr ? mask + row * words + w : &any;
        if (left == kWord) {
          body(word, elements);
          continue;
        }
        Bits copies[kWord] = {};
        std::memcpy(copies, elements, left * sizeof(Bits));
        body(word, copies);
        std::memcpy(elements, copies, left * sizeof(Bits));
      }
    }
  });
}

void Rectify(const TensorType& type, void* matrix, uint64_t* mask) {
  WithBits(type.dtype, [&](auto element) {
    using Bits = decltype(element);
    ForEachWord(type.shape, mask, static_cast<Bits*>(matrix),
                [](uint64_t* word, Bits* in) { RectifyWord(in, word); });
  });
}

void ApplyMask(const TensorType& type, const uint64_t* mask, void* matrix) {
  WithBits(type.dtype, [&](auto element) {
    using Bits = decltype(element);
    ForEachWord(type.shape, mask, static_cast<Bits*>(matrix),
                [](const uint64_t* word, Bits* in) { ApplyWord(*word, in); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Rectify);
HWY_EXPORT(ApplyMask);

void Rectify(const TensorType& type, void* matrix, void* mask) {
  HWY_DYNAMIC_DISPATCH(Rectify)(type, matrix, static_cast<uint64_t*>(mask));
}

void ApplyMask(const TensorType& type, const void* mask, void* matrix) {
  HWY_DYNAMIC_DISPATCH(ApplyMask)(type, static_cast<const uint64_t*>(mask), matrix);
}

}  // namespace syntra
#endif
