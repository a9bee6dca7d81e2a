// SPDX-License-Identifier: Apache-2.0
// Compares transposition and packing with their definitions, on every instruction set.
#include "kernels/cpu/pack.h"

#include <gtest/gtest.h>

#include <vector>

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

template <typename Stored, typename Packed>
void CheckPackOf(const Packing& shape, int64_t pair) {
  const int64_t stride = shape.stored_stride(),
                whole_k = shape.whole_k > 0 ? shape.whole_k : shape.k;
  std::vector<Stored> b((shape.transposed ? shape.n : shape.k) * stride);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = As<Stored>(1.0f + 0.001f * static_cast<float>(i % 997));
  std::vector<Packed> to(whole_k * shape.n);
  ASSERT_TRUE(CanPack(shape));
  Pack(shape, b.data(), reinterpret_cast<std::byte*>(to.data()));
  for (int64_t k = 0; k < shape.k; ++k) {
    for (int64_t n = 0; n < shape.n; ++n) {
      const Stored value = b[shape.transposed ? n * stride + k : k * stride + n];
      const int64_t row = n / 64 * (whole_k / pair) + k / pair;
      const int64_t place = (row * 64 + n % 64) * pair + k % pair;
      ASSERT_EQ(Read(to[place]), Read(As<Packed>(Read(value)))) << "row " << k << ", column " << n;
    }
  }
}

// Of a matrix, of columns of a wider one, and of rows of a larger B.
template <typename Stored, typename Packed>
void CheckPack(Packing shape, int64_t pair) {
  CheckPackOf<Stored, Packed>(shape, pair);
  shape.stride = shape.stored_stride() + 24;
  CheckPackOf<Stored, Packed>(shape, pair);
  shape.whole_k = 3 * shape.k;
  CheckPackOf<Stored, Packed>(shape, pair);
}

TEST(Pack, LaysOutBlocks) {
  OnEveryInstructionSet([] {
    for (const bool transposed : {false, true}) {
      const Packing f32{.k = 48,
                        .n = 192,
                        .transposed = transposed,
                        .stored = DType::kF32,
                        .packed = DType::kF32};
      CheckPack<float, float>(f32, 1);
      const Packing rounded{.k = 96,
                            .n = 128,
                            .transposed = transposed,
                            .stored = DType::kF32,
                            .packed = DType::kBF16};
      CheckPack<float, BFloat16>(rounded, 2);
      const Packing bf16{.k = 64,
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

TEST(Pack, RefusesPartialBlocks) {
  Packing shape{
      .k = 32, .n = 64, .transposed = true, .stored = DType::kF32, .packed = DType::kBF16};
  EXPECT_TRUE(CanPack(shape));
  shape.k = 48;
  EXPECT_FALSE(CanPack(shape));
  shape.transposed = false;
  EXPECT_TRUE(CanPack(shape));
  shape.k = 47;
  EXPECT_FALSE(CanPack(shape)) << "half a word";
  shape = {.k = 48, .n = 96, .transposed = false, .stored = DType::kF32, .packed = DType::kF32};
  EXPECT_FALSE(CanPack(shape));
  shape = {.k = 32, .n = 64, .transposed = false, .stored = DType::kBF16, .packed = DType::kF32};
  EXPECT_FALSE(CanPack(shape));
}

}  // namespace
}  // namespace syntra
