// SPDX-License-Identifier: Apache-2.0
// The common parts of ops that broadcast their operands as in NumPy: axes are aligned at the last
// one, and axes that are missing or of extent 1 repeat.
#pragma once

#include <algorithm>

#include "kernels/ops/shapes.h"
#include "kernels/strides.h"

namespace syntra {

// The attributes {shape, dtype} of a result of this type.
inline Attributes TypeAttributes(const TensorType& type) {
  return {{"shape", IntegersOf(type.shape)}, {"dtype", DTypeName(type.dtype)}};
}
inline TensorType TypeIn(const Attributes& attributes) {
  return {ResultDType(attributes), Shape(attributes.List("shape"))};
}

// a op b, elementwise: A or f32 each; bf16 if one of them is.
inline std::vector<TensorType> InferBroadcast(std::string_view op,
                                              std::span<const TensorType> inputs) {
  CheckOperands(op, inputs, {{"a", kActivation, kAnyRank}, {"b", kActivation, kAnyRank}});
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  std::vector<int64_t> dims(std::max(a.rank(), b.rank()));
  for (int i = 1; i <= std::ssize(dims); ++i) {
    dims[dims.size() - i] = std::max(i <= a.rank() ? a[-i] : 1, i <= b.rank() ? b[-i] : 1);
  }
  const Shape shape(dims);
  SYNTRA_CHECK(Broadcasts(a, shape) && Broadcasts(b, shape), "{} of {} and {}", op, ToString(a),
               ToString(b));
  const bool narrow = inputs[0].dtype == DType::kBF16 || inputs[1].dtype == DType::kBF16;
  return {{narrow ? DType::kBF16 : DType::kF32, shape}};
}

// Calls body(y, a, b) with the places of all elements of y.
template <typename Body>
void ForEachBroadcast(const Shape& y, const Shape& a, const Shape& b, const Body& body) {
  StridedLoop<3>::Over(y, {DenseStrides(y), BroadcastStrides(a, y), BroadcastStrides(b, y)})
      .ForEach([&](const Places<3>& at) { body(at.of[0], at.of[1], at.of[2]); });
}

// The gradient of input i: dy, times `factor` where there is one, summed over the axes along which
// the input was broadcast.
inline void ContributeSum(GradientRule& rule, int i, Value factor = {}) {
  const TensorType input = rule.recorder().TypeOf(rule.input(i));
  const Value dy = rule.output_gradient(0);
  if (!factor && rule.recorder().TypeOf(dy) == input) return rule.Pass(i, dy);
  rule.Contribute("sum_to", TypeAttributes(input), {dy, factor}, {i});
}

// Test cases of both add and multiply, as mixers use them with biases, gates, masks and tables.
inline std::vector<OpCase> BroadcastCases() {
  return {{"f32", {}, {F32({2, 3, 19}), F32({2, 3, 19})}, {}},
          {"bf16", {}, {BF16({2, 3, 67}), BF16({2, 3, 67})}, {}},
          {"bias", {}, {BF16({2, 5, 67}), F32({67})}, {}},
          {"mask", {}, {BF16({3, 5, 19}), F32({3, 5, 1})}, {}},
          {"one", {}, {F32({2, 3, 19}), F32({1})}, {}},
          {"tables", {}, {F32({3, 1, 19}), F32({5, 19})}, {}},
          {"both", {}, {F32({4, 1, 7, 1}), BF16({3, 1, 5})}, {}}};
}

}  // namespace syntra
