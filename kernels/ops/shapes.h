// SPDX-License-Identifier: Apache-2.0
// Helpers for the ops: checks of operands, what references share, and building blocks of test
// cases.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/op.h"

namespace syntra {

// In place of an operand's rank: it has at least this many axes.
constexpr int AtLeast(int axes) { return ~axes; }
inline constexpr int kAnyRank = AtLeast(0);

// An operand in an op's contract.
struct Operand {
  enum class Kind { kActivation, kF32, kI32 };  // kActivation: f32 or bf16
  const char* name;
  Kind kind;
  int rank;  // or AtLeast
  bool optional = false;
};

inline constexpr auto kActivation = Operand::Kind::kActivation;
inline constexpr auto kParameter = Operand::Kind::kF32;
inline constexpr auto kInteger = Operand::Kind::kI32;

inline bool HasKind(const TensorType& type, Operand::Kind kind) {
  switch (kind) {
    case Operand::Kind::kActivation:
      return type.dtype == DType::kF32 || type.dtype == DType::kBF16;
    case Operand::Kind::kF32:
      return type.dtype == DType::kF32;
    case Operand::Kind::kI32:
      return type.dtype == DType::kI32;
  }
  return false;
}

// Checks number, presence, element types and ranks.
inline void CheckOperands(std::string_view op, std::span<const TensorType> inputs,
                          const std::vector<Operand>& operands) {
  SYNTRA_CHECK(inputs.size() == operands.size(), "{} takes {} operands, not {}", op,
               operands.size(), inputs.size());
  size_t i = 0;
  for (const Operand& operand : operands) {
    const TensorType& type = inputs[i++];
    if (!type.present()) {
      SYNTRA_CHECK(operand.optional, "{} needs its operand {}", op, operand.name);
      continue;
    }
    SYNTRA_CHECK(HasKind(type, operand.kind), "{}: operand {} is {}", op, operand.name,
                 ToString(type));
    const bool at_least = operand.rank < 0;
    const int rank = at_least ? ~operand.rank : operand.rank, given = type.shape.rank();
    SYNTRA_CHECK(at_least ? given >= rank : given == rank, "{}: operand {} is {}, not of rank {}{}",
                 op, operand.name, ToString(type), rank, at_least ? " or more" : "");
  }
}

// Checks that the operand `name` of `op` is of this very type or absent.
inline void CheckType(std::string_view op, std::string_view name, const TensorType& given,
                      const TensorType& type) {
  SYNTRA_CHECK(!given.present() || given == type, "{}: {} is {}, not {}", op, name, ToString(given),
               ToString(type));
}

// Checks that `type`, the operand or result `name` of `op`, has this shape or is absent.
inline void CheckShape(std::string_view op, std::string_view name, const TensorType& type,
                       const Shape& shape) {
  SYNTRA_CHECK(!type.present() || type.shape == shape, "{}: {} is {}, not {}", op, name,
               ToString(type), ToString(shape));
}

// Checks the rate of a random mask, which must be below 1 as a float, too.
inline double CheckedRate(std::string_view op, const Attributes& attributes) {
  const double rate = attributes.Number("rate");
  SYNTRA_CHECK(rate >= 0.0 && static_cast<float>(rate) < 1.0f, "{}: rate {}", op, rate);
  return rate;
}

// Checks the rate and the keys of a random mask. Keys are `[B, 2]`, one row for each example.
inline void CheckNoise(std::string_view op, const Attributes& attributes, const TensorType& keys,
                       int64_t examples) {
  const double rate = CheckedRate(op, attributes);
  SYNTRA_CHECK(rate == 0.0 || keys.present(), "{}: rate {} needs keys", op, rate);
  CheckShape(op, "keys", keys, {examples, 2});
}

inline double RootMeanSquare(std::span<const double> values) {
  double sum = 0.0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

inline TensorType None() { return {DType::kNone, {}}; }
inline TensorType F32(Shape shape) { return {DType::kF32, shape}; }
inline TensorType BF16(Shape shape) { return {DType::kBF16, shape}; }
inline TensorType I32(Shape shape) { return {DType::kI32, shape}; }

// The element type named by the attribute {dtype "f32"/"bf16"}.
inline DType ResultDType(const Attributes& attributes) {
  const std::string& name = attributes.Text("dtype");
  SYNTRA_CHECK(name == "f32" || name == "bf16", "dtype \"{}\"", name);
  return name == "f32" ? DType::kF32 : DType::kBF16;
}

inline std::string DTypeName(DType dtype) { return std::string(NameOf(dtype)); }

// The element types of activations that test cases use.
inline constexpr DType kActivationTypes[] = {DType::kF32, DType::kBF16};

// Moves the numbers of an operand away from the kink of relu.
inline void AwayFromZero(int, std::span<double> numbers) {
  for (double& x : numbers) x += x < 0.0 ? -1e-2 : 1e-2;
}

// Fills every integer operand with fixed pseudorandom values between first and last, inclusive.
inline FillIntegers FillBetween(int32_t first, int32_t last) {
  return [first, last](int input, std::span<int32_t> values) {
    uint32_t state = 0x9E3779B9u * static_cast<uint32_t>(input + 1);
    for (int32_t& value : values) {
      state = state * 1664525u + 1013904223u;
      value = first + static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(last - first + 1));
    }
  };
}

}  // namespace syntra
