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

  bool present() const { return dtype != DType::kNone; }
  size_t bytes() const { return shape.size() * SizeOf(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string ToString(const TensorType& type);  // "bf16[4, 512, 768]"

// bfloat16 storage; arithmetic happens in float.
struct BFloat16 {
  uint16_t bits;
};

// Dense and row-major.
struct TensorView {
  void* data = nullptr;
  TensorType type;
  Device* device = &Host();

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
  SYNTRA_CHECK(device->is_host() && type.dtype == DTypeOf<std::remove_const_t<T>>(),
               "view of {} read as {}", ToString(type), NameOf(DTypeOf<std::remove_const_t<T>>()));
  return {static_cast<T*>(data), static_cast<size_t>(type.shape.size())};
}

}  // namespace syntra
