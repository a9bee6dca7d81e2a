// SPDX-License-Identifier: Apache-2.0
// y = x + bias: x [.., N], bias [N] f32. The gradient of the bias sums dy over all rows.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("add_bias", inputs, {{"x", kActivation, kAnyRank}, {"bias", kParameter, 1}});
  CheckShape("add_bias", "bias", inputs[1], {inputs[0].shape[-1]});
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, bias = inputs[1].numbers, y = outputs[0].numbers;
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] + bias[i % bias.size()];
}

void Gradient(GradientRule& rule) {
  rule.Pass(0, rule.output_gradient(0));
  rule.Contribute("add_bias_grad", {}, {rule.output_gradient(0)}, {1});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back({DTypeName(dtype), {}, {{dtype, {2, 3, 19}}, F32({19})}, {}});
    cases.push_back({DTypeName(dtype) + "_wide", {}, {{dtype, {5, 67}}, F32({67})}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("add_bias_grad", inputs, {{"dy", kActivation, kAnyRank}});
  return {F32({inputs[0].shape[-1]})};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto dy = inputs[0].numbers, dbias = outputs[0].numbers;
  std::ranges::fill(dbias, 0.0);
  for (size_t i = 0; i < dy.size(); ++i) dbias[i % dbias.size()] += dy[i];
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back({DTypeName(dtype), {}, {{dtype, {2, 3, 19}}}, {}});
    cases.push_back({DTypeName(dtype) + "_long", {}, {{dtype, {3, 101, 67}}}, {}});
  }
  return cases;
}

}  // namespace

Op op_add_bias() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_add_bias_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
