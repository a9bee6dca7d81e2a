// SPDX-License-Identifier: Apache-2.0
// y = dropout(gelu(x) * g) in one pass: x and g [B, T, F], keys [B, 2]; gated_gelu and dropout.
// Attributes {rate, site, per_element} as for dropout, in groups of one. The backward pass draws
// the mask again: the gradients are those of gated_gelu for dropout(dy).
#include "kernels/ops/dropout_of.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("gated_gelu_dropout", inputs,
                {{"x", kActivation, 3}, {"g", kActivation, 3}, {"keys", kInteger, 2}});
  CheckNoise("gated_gelu_dropout", attributes, inputs[2], inputs[0].shape[0]);
  return GetOp("gated_gelu").infer({}, inputs.first(2));
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  GetOp("gated_gelu").reference({}, inputs.first(2), outputs);
  DropoutReference(call, outputs[0], inputs[2], outputs[0]);
}

void Gradient(GradientRule& rule) {
  rule.Contribute("gated_gelu_dropout_grad", rule.attributes(),
                  {rule.input(0), rule.input(1), rule.output_gradient(0), rule.input(2)}, {0, 1});
}

Attributes With(bool per_element) {
  return {{"rate", 0.25}, {"site", 7}, {"per_element", per_element}};
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const TensorType x = {dtype, {2, 3, 67}};
    cases.push_back({DTypeName(dtype) + "_shared", With(false), {x, x, I32({2, 2})}, {}});
    cases.push_back({DTypeName(dtype) + "_element", With(true), {x, x, I32({2, 2})}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("gated_gelu_dropout_grad", inputs,
                {{"x", kActivation, 3},
                 {"g", kActivation, 3},
                 {"dy", kActivation, 3},
                 {"keys", kInteger, 2}});
  CheckNoise("gated_gelu_dropout_grad", attributes, inputs[3], inputs[0].shape[0]);
  return GetOp("gated_gelu_grad").infer({}, inputs.first(3));
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  std::vector<double> masked(inputs[2].numbers.size());
  const ReferenceTensor dy{.type = inputs[2].type, .numbers = masked, .integers = {}};
  DropoutReference(call, inputs[2], inputs[3], dy);
  const std::array of_gate{inputs[0], inputs[1], dy};
  GetOp("gated_gelu_grad").reference({}, of_gate, outputs);
}

}  // namespace

Op op_gated_gelu_dropout() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

// Its cases are the gradients of gated_gelu_dropout's.
Op op_gated_gelu_dropout_grad() { return {.infer = GradInfer, .reference = GradReference}; }

}  // namespace syntra
