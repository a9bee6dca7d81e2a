// SPDX-License-Identifier: Apache-2.0
// y = dropout(max(x, 0)) in one pass: x [B, T, D], keys [B, 2]. Attributes {rate, site,
// per_element} as for dropout, in groups of one. Backward, from the result and without noise:
// dx = dy / (1 - rate) where y > 0, else 0.
#include "kernels/ops/dropout_of.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("relu_dropout", inputs, {{"x", kActivation, 3}, {"keys", kInteger, 2}});
  CheckNoise("relu_dropout", attributes, inputs[1], inputs[0].shape[0]);
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const OpCall relu{.attributes = {{"kind", "relu"}},
                    .inputs = {call.inputs[0]},
                    .outputs = call.outputs,
                    .accumulate = {false}};
  GetOp("activation").reference(relu, inputs.first(1), outputs);
  DropoutReference(call, outputs[0], inputs[1], outputs[0]);
}

void Gradient(GradientRule& rule) {
  rule.Contribute("relu_dropout_grad", {{"rate", rule.attributes().Number("rate")}},
                  {rule.output(0), rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    for (const bool per_element : {false, true}) {
      const Attributes attributes{{"rate", 0.25}, {"site", 7}, {"per_element", per_element}};
      cases.push_back({DTypeName(dtype) + (per_element ? "_element" : "_shared"),
                       attributes,
                       {{dtype, {2, 3, 67}}, I32({2, 2})},
                       {},
                       AwayFromZero});
    }
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("relu_dropout_grad", inputs, {{"y", kActivation, 3}, {"dy", kActivation, 3}});
  CheckType("relu_dropout_grad", "dy", inputs[1], inputs[0]);
  CheckedRate("relu_dropout_grad", attributes);
  return {inputs[0]};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto y = inputs[0].numbers, dy = inputs[1].numbers, dx = outputs[0].numbers;
  const double kept = 1.0 - call.attributes.Number("rate");
  for (size_t i = 0; i < y.size(); ++i) dx[i] = y[i] > 0.0 ? dy[i] / kept : 0.0;
}

}  // namespace

Op op_relu_dropout() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

// Its cases are the gradients of relu_dropout's.
Op op_relu_dropout_grad() {
  return {.infer = GradInfer, .reference = GradReference, .elementwise = true};
}

}  // namespace syntra
