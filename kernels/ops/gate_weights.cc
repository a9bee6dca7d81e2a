// SPDX-License-Identifier: Apache-2.0
// The weights of a mixture from its logits. {kind}:
//   "sigmoid": logit [1] -> [2] = (1 - s, s), s = 1 / (1 + exp(-logit));  "softmax": [n] -> [n].
// Backward from the weights w: sigmoid (d_1 - d_0) w_0 w_1; softmax w_i (d_i - sum_j w_j d_j).
#include <algorithm>
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

bool IsSigmoid(const Attributes& attributes) {
  const std::string& kind = attributes.Text("kind");
  SYNTRA_CHECK(kind == "sigmoid" || kind == "softmax", "gate_weights of kind \"{}\"", kind);
  return kind == "sigmoid";
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("gate_weights", inputs, {{"logits", kParameter, 1}});
  if (!IsSigmoid(attributes)) return {inputs[0]};
  CheckShape("gate_weights", "logits", inputs[0], {1});
  return {F32({2})};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto logits = inputs[0].numbers, weights = outputs[0].numbers;
  if (IsSigmoid(call.attributes)) {
    weights[0] = 1.0 / (1.0 + std::exp(logits[0]));
    weights[1] = 1.0 / (1.0 + std::exp(-logits[0]));
    return;
  }
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) sum += weights[i] = std::exp(logits[i] - largest);
  for (double& weight : weights) weight /= sum;
}

void Gradient(GradientRule& rule) {
  rule.Contribute("gate_weights_grad", rule.attributes(), {rule.output(0), rule.output_gradient(0)},
                  {0});
}

std::vector<OpCase> Cases() {
  return {{"sigmoid", {{"kind", "sigmoid"}}, {F32({1})}, {}},
          {"softmax", {{"kind", "softmax"}}, {F32({3})}, {}},
          {"softmax_more", {{"kind", "softmax"}}, {F32({19})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("gate_weights_grad", inputs, {{"weights", kParameter, 1}, {"d", kParameter, 1}});
  CheckShape("gate_weights_grad", "d", inputs[1], inputs[0].shape);
  if (!IsSigmoid(attributes)) return {inputs[0]};
  CheckShape("gate_weights_grad", "weights", inputs[0], {2});
  return {F32({1})};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto w = inputs[0].numbers, d = inputs[1].numbers, dlogits = outputs[0].numbers;
  if (IsSigmoid(call.attributes)) {
    dlogits[0] = (d[1] - d[0]) * w[0] * w[1];
    return;
  }
  double mean = 0.0;
  for (size_t i = 0; i < w.size(); ++i) mean += w[i] * d[i];
  for (size_t i = 0; i < w.size(); ++i) dlogits[i] = w[i] * (d[i] - mean);
}

std::vector<OpCase> GradCases() {
  return {{"sigmoid", {{"kind", "sigmoid"}}, {F32({2}), F32({2})}, {}},
          {"softmax", {{"kind", "softmax"}}, {F32({3}), F32({3})}, {}},
          {"softmax_more", {{"kind", "softmax"}}, {F32({19}), F32({19})}, {}}};
}

}  // namespace

Op op_gate_weights() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_gate_weights_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
