// SPDX-License-Identifier: Apache-2.0
// Tensor types and views. A view never owns its memory; `Buffer` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace syntra {

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  // The elements from one row (of the last axis) to the next, if the tensor is columns of a wider
  // matrix. 0: the tensor is contiguous. Only operands of bound calls are such columns
  // (Op::takes_columns).
  int64_t pitch = 0;

  bool present() const { return dtype != DType::kNone; }
  int64_t row_pitch() const { return pitch > 0 ? pitch : shape[-1]; }
  // From the first element to just past the last.
  size_t bytes() const {
    const int64_t gaps = pitch > 0 ? (shape.rows() - 1) * (pitch - shape[-1]) : 0;
    return (shape.size() + gaps) * SizeOf(dtype);
  }
  // Calls body(place, count) for elements that follow each other, the first of them `place`
  // elements after the first of all: once, or for each row of columns.
  template <typename Body>
  void ForEachRun(const Body& body) const {
    if (pitch == 0) return body(int64_t{0}, shape.size());
    for (int64_t row = 0; row < shape.rows(); ++row) body(row * pitch, shape[-1]);
  }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string ToString(const TensorType& type);  // "bf16[4, 512, 768]", "bf16[4, 512, 768] of 2304"

// bfloat16 storage; arithmetic happens in float.
struct BFloat16 {
  uint16_t bits;
};

// Row-major.
struct TensorView {
  void* data = nullptr;
  TensorType type;
  Device* device = &Host();

  // All elements, which must be contiguous.
  template <typename T>
  std::span<T> As() const;
};

template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<float>() {
  return DType::kF32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kF64;
}
template <>
constexpr DType DTypeOf<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType DTypeOf<BFloat16>() {
  return DType::kBF16;
}

template <typename T>
std::span<T> TensorView::As() const {
  SYNTRA_CHECK(
      device->is_host() && type.dtype == DTypeOf<std::remove_const_t<T>>() && type.pitch == 0,
      "view of {} read as {}", ToString(type), NameOf(DTypeOf<std::remove_const_t<T>>()));
  return {static_cast<T*>(data), static_cast<size_t>(type.shape.size())};
}

}  // namespace syntra
