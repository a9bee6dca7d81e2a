// SPDX-License-Identifier: Apache-2.0
// ReLU and masks of bits. A thread rectifies the 32 elements of a word, and applies the byte of
// eight.
#include "kernels/cuda/bit_mask.h"

#include "kernels/bit_mask.h"
#include "kernels/cuda/rows.h"
#include "kernels/math/activation.h"
#include "kernels/operands.h"

namespace syntra::gpu {
namespace {

constexpr int kWordBits = 32, kWordPieces = kWordBits / kEight;

// A row of the mask has `words` words.
template <typename T>
__global__ void RectifyKernel(T* matrix, int64_t rows, int64_t columns, int64_t words,
                              uint32_t* mask) {
  ForThreadItems(rows * words, [&](int64_t i) {
    const int64_t first = i % words * kWordBits, left = columns - first;
    T* at = matrix + i / words * columns + first;
    const auto count = [left](int piece) {
      const int64_t here = left - piece * kEight;
      return static_cast<int>(here < 0 ? 0 : here < kEight ? here : kEight);
    };
    Eight values[kWordPieces];
#pragma unroll
    for (int n = 0; n < kWordPieces; ++n) values[n] = LoadEight(at + n * kEight, count(n));
    uint32_t bits = 0;
#pragma unroll
    for (int n = 0; n < kWordPieces; ++n) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        values[n][k] = scalar::Relu::Value(values[n][k]);
        bits |= (values[n][k] > 0.0f ? 1u : 0u) << (n * kEight + k);
      }
      StoreEight(values[n], at + n * kEight, count(n));
    }
    if (mask != nullptr) mask[i] = bits;
  });
}

template <typename T>
struct Apply {
  const uint8_t* mask;
  T* matrix;
  int64_t columns, stride;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const uint32_t bits = mask[row * stride + column / kEight];
    T* at = matrix + row * columns + column;
    Eight values = LoadEight(at, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[k] = (bits >> k & 1) != 0 ? values[k] : 0.0f;
    StoreEight(values, at, count);
  }
};

// A mask and its matrix as one row: what they are if no row of the mask has more bits than
// elements.
template <typename T>
struct ApplyToOneRow {
  Apply<T> body;
  __device__ void operator()(int64_t i, int count) const { body(0, i, count); }
};

}  // namespace

void Rectify(const KernelArguments& call, const TensorType& type, void* matrix, void* mask) {
  const int64_t rows = type.shape.rows(), columns = type.shape[-1];
  const int64_t words = MaskStride(columns) * 8 / kWordBits;
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    Launch(call, GridFor(rows * words), RectifyKernel<T>, static_cast<T*>(matrix), rows, columns,
           words, static_cast<uint32_t*>(mask));
  });
}

void ApplyMask(const KernelArguments& call, const TensorType& type, const void* mask,
               void* matrix) {
  const int64_t rows = type.shape.rows(), columns = type.shape[-1];
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    const Apply<T> apply{static_cast<const uint8_t*>(mask), static_cast<T*>(matrix), columns,
                         MaskStride(columns)};
    if (columns % kMaskRowBits == 0) {
      Elementwise(call, rows * columns, ApplyToOneRow<T>{apply});
    } else {
      Rowwise(call, rows, columns, apply);
    }
  });
}

}  // namespace syntra::gpu
