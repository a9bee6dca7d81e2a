// SPDX-License-Identifier: Apache-2.0
// Masks of bits, one for each element of a matrix [.., N]: i32 [.., W], where bit j % 32 of word
// j / 32 is element j's. Rows are whole multiples of 128 bits; bits beyond the N of a row are 0.
#pragma once

#include <bit>
#include <cstdint>

#include "base/divide.h"
#include "core/tensor.h"

namespace syntra {

inline constexpr int64_t kMaskRowBits = 128;

// From one row of a mask to the next, in bytes; then bit j % 8 of byte j / 8 is element j's.
inline int64_t MaskStride(int64_t columns) {
  static_assert(std::endian::native == std::endian::little);
  return DivideUp(columns, kMaskRowBits) * (kMaskRowBits / 8);
}

// The type of a mask for matrices of this shape.
inline TensorType MaskOf(const Shape& shape) {
  const int64_t words = MaskStride(shape[-1]) / static_cast<int64_t>(sizeof(int32_t));
  return {DType::kI32, shape.With(-1, words)};
}

struct MaskBit {
  int64_t word;
  uint32_t bit;  // of that word, alone
};

// The place of an element's bit in a mask. `element` is counted from the start of a matrix with
// `columns` columns.
inline MaskBit MaskBitOf(int64_t element, int64_t columns) {
  const int64_t words = MaskStride(columns) / static_cast<int64_t>(sizeof(int32_t));
  const int64_t row = element / columns, column = element % columns;
  return {row * words + column / 32, 1u << column % 32};
}

}  // namespace syntra
