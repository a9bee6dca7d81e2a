// SPDX-License-Identifier: Apache-2.0
// y = x in the element type {dtype}, from i32 to f32 or from f32 to i32: whole numbers of at most
// 2^24, which f32 holds exactly. So what moves f32 can move segments. No gradient.
#include <algorithm>
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(attributes.Text("dtype") == "f32" || attributes.Text("dtype") == "i32", "cast to {}",
               attributes.Text("dtype"));
  const bool to_integers = attributes.Text("dtype") == "i32";
  CheckOperands("cast", inputs, {{"x", to_integers ? kParameter : kInteger, kAnyRank}});
  return {{to_integers ? DType::kI32 : DType::kF32, inputs[0].shape}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  if (call.outputs[0].dtype == DType::kI32) {
    std::ranges::transform(inputs[0].numbers, outputs[0].integers.begin(),
                           [](double x) { return static_cast<int32_t>(x); });
  } else {
    std::ranges::copy(inputs[0].integers, outputs[0].numbers.begin());
  }
}

std::vector<OpCase> Cases() {
  const FillNumbers whole = [](int, std::span<double> values) {
    for (double& value : values) value = std::round(1000 * value);
  };
  return {{"to_f32", {{"dtype", "f32"}}, {I32({3, 19})}, FillBetween(-1000, 1 << 24)},
          {"to_i32", {{"dtype", "i32"}}, {F32({2, 3, 67})}, {}, whole}};
}

}  // namespace

Op op_cast() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
