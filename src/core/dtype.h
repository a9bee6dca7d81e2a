// SPDX-License-Identifier: Apache-2.0
// Element types. Training computes in kF32 or kBF16; the reference backend computes in kF64; kI32
// holds token ids, segment ids and random keys; kNone marks an operand that is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace syntra {

enum class DType : uint8_t { kNone, kF32, kBF16, kF64, kI32 };

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kNone:
      return 0;
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
      return 8;
  }
  return 0;
}

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF64;
}

constexpr std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kNone:
      return "none";
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

}  // namespace syntra
