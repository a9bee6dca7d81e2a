// SPDX-License-Identifier: Apache-2.0
// Compares transposition and packing with their definitions, on every instruction set.
#include "kernels/cpu/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/divide.h"
#include "core/instruction_sets.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

template <typename T>
void CheckTranspose(int64_t rows, int64_t columns, int64_t stride, DType dtype) {
  SCOPED_TRACE(testing::Message() << rows << " x " << columns << " of " << stride);
  std::vector<T> from(rows * stride), to(columns * rows);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 2654435761u >> 8);
  Transpose({.rows = rows, .columns = columns, .stride = stride, .dtype = dtype}, from.data(),
            to.data());
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) ASSERT_EQ(to[c * rows + r], from[r * stride + c]);
  }
}

TEST(Pack, TransposesAnyMatrix) {
  OnEveryInstructionSet([] {
    for (const int64_t rows : {1, 16, 33, 200}) {
      for (const int64_t columns : {1, 31, 64, 130}) {
        for (const int64_t gap : {0, 3}) {
          CheckTranspose<uint32_t>(rows, columns, columns + gap, DType::kF32);
          CheckTranspose<uint16_t>(rows, columns, columns + gap, DType::kBF16);
        }
      }
    }
  });
}

template <typename T>
T As(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return ToBFloat16(value);
  }
}
float Read(float value) { return value; }
float Read(BFloat16 value) { return ToFloat(value); }

// The number of a word in a panel of `words` rows.
int64_t PlaceInPanel(PanelLayout layout, int64_t words, int64_t row, int64_t column) {
  if (layout == PanelLayout::kRows) return row * 64 + column;
  if (layout == PanelLayout::kSquares) {
    return (row / 16 * 4 + column / 16) * 256 + column % 16 * 16 + row % 16;
  }
  const int64_t before = column / 6 * 6, width = std::min<int64_t>(6, 64 - before);
  return before * words + row * width + column % 6;
}

template <typename Stored, typename Packed>
void CheckPackOf(const PanelPacking& shape, int64_t pair) {
  const int64_t stride = shape.stored_stride(), words = PackedWords(shape);
  std::vector<Stored> b((shape.transposed ? shape.n : shape.k) * stride);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = As<Stored>(1.0f + 0.001f * static_cast<float>(i % 997));
  std::vector<Packed> to(words * pair * shape.n, As<Packed>(7.0f));
  ASSERT_TRUE(CanPack(shape));
  Pack(shape, b.data(), reinterpret_cast<std::byte*>(to.data()));
  const bool fills = shape.fill || shape.layout == PanelLayout::kSquares;
  const int64_t rows = fills ? DivideUp(shape.k, 16 * pair) * 16 * pair : shape.k;
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t n = 0; n < shape.n; ++n) {
      const Stored value =
          k >= shape.k ? As<Stored>(0.0f) : b[shape.transposed ? n * stride + k : k * stride + n];
      const int64_t word =
          n / 64 * 64 * words + PlaceInPanel(shape.layout, words, k / pair, n % 64);
      ASSERT_EQ(Read(to[word * pair + k % pair]), Read(As<Packed>(Read(value))))
          << "row " << k << ", column " << n;
    }
  }
}

// Of a matrix, of columns of a wider one, and of rows of a larger B.
template <typename Stored, typename Packed>
void CheckPack(PanelPacking shape, int64_t pair) {
  CheckPackOf<Stored, Packed>(shape, pair);
  shape.stride = shape.stored_stride() + 24;
  CheckPackOf<Stored, Packed>(shape, pair);
  shape.whole_k = 3 * shape.k;
  CheckPackOf<Stored, Packed>(shape, pair);
}

TEST(Pack, LaysOutBlocks) {
  OnEveryInstructionSet([] {
    for (const bool transposed : {false, true}) {
      const PanelPacking f32{.k = 48,
                             .n = 192,
                             .transposed = transposed,
                             .stored = DType::kF32,
                             .packed = DType::kF32};
      CheckPack<float, float>(f32, 1);
      const PanelPacking rounded{.k = 96,
                                 .n = 128,
                                 .transposed = transposed,
                                 .stored = DType::kF32,
                                 .packed = DType::kBF16};
      CheckPack<float, BFloat16>(rounded, 2);
      const PanelPacking bf16{.k = 64,
                              .n = 128,
                              .transposed = transposed,
                              .stored = DType::kBF16,
                              .packed = DType::kBF16};
      CheckPack<BFloat16, BFloat16>(bf16, 2);
    }
    // Rows in any number, where B is not transposed.
    CheckPack<float, float>(
        {.k = 19, .n = 64, .transposed = false, .stored = DType::kF32, .packed = DType::kF32}, 1);
    CheckPack<BFloat16, BFloat16>(
        {.k = 38, .n = 64, .transposed = false, .stored = DType::kBF16, .packed = DType::kBF16}, 2);
  });
}

TEST(Pack, LaysOutTheLeftOperand) {
  OnEveryInstructionSet([] {
    for (const PanelLayout layout : {PanelLayout::kStrips, PanelLayout::kSquares}) {
      for (const int64_t k : {2, 38, 64}) {
        const auto shape = [&](DType stored, DType packed) {
          return PanelPacking{.k = k,
                              .n = 128,
                              .transposed = false,
                              .stored = stored,
                              .packed = packed,
                              .layout = layout};
        };
        CheckPack<float, float>(shape(DType::kF32, DType::kF32), 1);
        CheckPack<float, BFloat16>(shape(DType::kF32, DType::kBF16), 2);
        CheckPack<BFloat16, BFloat16>(shape(DType::kBF16, DType::kBF16), 2);
      }
    }
  });
}

TEST(Pack, FillsTheLastBlock) {
  OnEveryInstructionSet([] {
    CheckPackOf<float, float>({.k = 19,
                               .n = 128,
                               .transposed = false,
                               .stored = DType::kF32,
                               .packed = DType::kF32,
                               .fill = true},
                              1);
    CheckPackOf<BFloat16, BFloat16>({.k = 38,
                                     .n = 64,
                                     .transposed = false,
                                     .stored = DType::kBF16,
                                     .packed = DType::kBF16,
                                     .fill = true},
                                    2);
  });
}

TEST(Pack, RefusesPartialBlocks) {
  PanelPacking shape{
      .k = 32, .n = 64, .transposed = true, .stored = DType::kF32, .packed = DType::kBF16};
  EXPECT_TRUE(CanPack(shape));
  shape.k = 48;
  EXPECT_FALSE(CanPack(shape));
  shape.transposed = false;
  EXPECT_TRUE(CanPack(shape));
  shape.k = 47;
  EXPECT_FALSE(CanPack(shape)) << "half a word";
  shape.k = 32;
  shape.transposed = true;
  shape.layout = PanelLayout::kStrips;
  EXPECT_FALSE(CanPack(shape)) << "a transposed matrix as a left operand";
  shape = {.k = 48, .n = 96, .transposed = false, .stored = DType::kF32, .packed = DType::kF32};
  EXPECT_FALSE(CanPack(shape));
  shape = {.k = 32, .n = 64, .transposed = false, .stored = DType::kBF16, .packed = DType::kF32};
  EXPECT_FALSE(CanPack(shape));
}

}  // namespace
}  // namespace syntra
