// Element types. Training computes in kF32 or kBF16; kF64 is the reference backend's truth; kI32 holds
// token ids, segment ids and random keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace syntra {

enum class DType : uint8_t { kF32, kBF16, kF64, kI32 };

constexpr size_t SizeOf(DType dtype) {
  return dtype == DType::kF64 ? 8 : dtype == DType::kBF16 ? 2 : 4;
}

constexpr bool IsFloat(DType dtype) { return dtype != DType::kI32; }

constexpr std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kF64: return "f64";
    case DType::kI32: return "i32";
  }
  return "?";
}

}  // namespace syntra
