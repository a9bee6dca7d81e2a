// SPDX-License-Identifier: Apache-2.0
// The largest element over the last axis and its index: x A [.., N] -> A [.., 1], i32 [..]. The
// first of equals counts; NaN is passed over. reduce_max_grad: dx [.., N] is dy at the index, zero
// elsewhere.
// Attributes of the gradient {extent N}.
#include <algorithm>
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("reduce_max", inputs, {{"x", kActivation, AtLeast(1)}});
  const Shape& x = inputs[0].shape;
  return {{inputs[0].dtype, x.With(-1, 1)}, I32(x.Without(-1))};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t width = inputs[0].dim(-1);
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    const auto x = inputs[0].numbers.subspan(row * width, width);
    const auto largest = std::ranges::max_element(
        x, [](double a, double b) { return a < b || (std::isnan(a) && !std::isnan(b)); });
    if (outputs[0].present()) outputs[0].numbers[row] = *largest;
    if (outputs[1].present()) {
      outputs[1].integers[row] = static_cast<int32_t>(largest - x.begin());
    }
  }
}

void Gradient(GradientRule& rule) {
  const int64_t extent = rule.recorder().TypeOf(rule.input(0)).shape[-1];
  rule.Contribute("reduce_max_grad", {{"extent", extent}},
                  {rule.output(1), rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  return {{"f32", {}, {F32({2, 3, 19})}, {}},
          {"bf16", {}, {BF16({3, 67})}, {}},
          {"wide", {}, {F32({2, 1031})}, {}},
          {"one", {}, {F32({5, 1})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("reduce_max_grad", inputs,
                {{"index", kInteger, kAnyRank}, {"dy", kActivation, AtLeast(1)}});
  const Shape& dy = inputs[1].shape;
  CheckShape("reduce_max_grad", "dy", inputs[1], dy.With(-1, 1));
  CheckShape("reduce_max_grad", "index", inputs[0], dy.Without(-1));
  return {{inputs[1].dtype, dy.With(-1, attributes.Int("extent"))}};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto index = inputs[0].integers;
  for (int64_t row = 0; row < std::ssize(index); ++row) {
    outputs[0].numbers[row * outputs[0].dim(-1) + index[row]] = inputs[1].numbers[row];
  }
}

}  // namespace

Op op_reduce_max() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

// Its cases are the gradients of reduce_max's.
Op op_reduce_max_grad() { return {.infer = GradInfer, .reference = GradReference}; }

}  // namespace syntra
