// SPDX-License-Identifier: Apache-2.0
// Masks of bits. A thread writes the word of 32 elements, and applies the byte of eight.
#include "kernels/cuda/bit_mask.h"

#include "kernels/bit_mask.h"
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra::gpu {
namespace {

constexpr int kWordBits = 32;

// A row of the mask has `words` words.
template <typename T>
__global__ void WriteMaskKernel(const T* matrix, int64_t rows, int64_t columns, int64_t words,
                                uint32_t* mask) {
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t i = BlockIndex() * ThreadCount() + ThreadIndex(); i < rows * words; i += stride) {
    const int64_t first = i % words * kWordBits;
    const T* from = matrix + i / words * columns + first;
    uint32_t bits = 0;
#pragma unroll
    for (int at = 0; at < kWordBits; at += kEight) {
      const int64_t left = columns - first - at;
      const auto count = static_cast<int>(left < 0 ? 0 : left < kEight ? left : kEight);
      const Eight values = LoadEight(from + at, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) bits |= (values[k] > 0.0f ? 1u : 0u) << (at + k);
    }
    mask[i] = bits;
  }
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

template <typename T>
struct Positive {
  T* matrix;

  __device__ void operator()(int64_t i, int count) const {
    Eight values = LoadEight(matrix + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[k] = fmaxf(values[k], 0.0f);
    StoreEight(values, matrix + i, count);
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

void WriteMask(const KernelArguments& call, const TensorType& type, const void* matrix,
               void* mask) {
  const int64_t rows = type.shape.rows(), columns = type.shape[-1];
  const int64_t words = MaskStride(columns) * 8 / kWordBits;
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    Launch(call, GridFor(rows * words), WriteMaskKernel<T>, static_cast<const T*>(matrix), rows,
           columns, words, static_cast<uint32_t*>(mask));
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

void Rectify(const KernelArguments& call, const TensorType& type, void* matrix) {
  WithActivation(type.dtype, [&](auto element) {
    using T = decltype(element);
    Elementwise(call, type.shape.size(), Positive<T>{static_cast<T*>(matrix)});
  });
}

}  // namespace syntra::gpu
