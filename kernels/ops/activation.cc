// SPDX-License-Identifier: Apache-2.0
// y = f(x) elementwise, x A of any shape, f the function {kind} of kernels/math/activation.inc.
// activation_grad: dx = f' dy, with f' from y for those that are cheaper to differentiate from
// their value, so that x need not be kept, and from x for the others. Attributes {kind}.
#include "kernels/math/activation.h"

#include <cmath>
#include <set>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

template <typename Body>
void WithFunction(const Attributes& attributes, const Body& body) {
  const std::string& kind = attributes.Text("kind");
  SYNTRA_CHECK(scalar::WithActivationFunction(kind, body), "activation of kind \"{}\"", kind);
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("activation", inputs, {{"x", kActivation, kAnyRank}});
  WithFunction(attributes, [](auto) {});
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  WithFunction(call.attributes, [&](auto function) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = function.Value(x[i]);
  });
}

void Gradient(GradientRule& rule) {
  bool from_value = false;
  WithFunction(rule.attributes(), [&](auto function) { from_value = function.kFromValue; });
  rule.Contribute("activation_grad", rule.attributes(),
                  {from_value ? rule.output(0) : rule.input(0), rule.output_gradient(0)}, {0});
}

// Away from where logarithms, reciprocals and roots end.
void Positive(int, std::span<double> numbers) {
  for (double& x : numbers) x = std::abs(x) + 0.25;
}

std::vector<OpCase> Cases() {
  const std::set<std::string> positive = {"log", "reciprocal", "square_root"};
  std::vector<OpCase> cases;
  scalar::ForEachActivationFunction([&](const char* kind, auto) {
    cases.push_back({kind,
                     {{"kind", kind}},
                     {F32({2, 3, 19})},
                     {},
                     positive.contains(kind) ? Positive : AwayFromZero});
  });
  // Every kind goes through the same loops; these show them in bf16.
  cases.push_back({"relu_bf16", {{"kind", "relu"}}, {BF16({5, 67})}, {}, AwayFromZero});
  cases.push_back({"silu_bf16", {{"kind", "silu"}}, {BF16({5, 67})}, {}});
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("activation_grad", inputs,
                {{"x or y", kActivation, kAnyRank}, {"dy", kActivation, kAnyRank}});
  WithFunction(attributes, [](auto) {});
  CheckType("activation_grad", "dy", inputs[1], inputs[0]);
  return {inputs[0]};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto from = inputs[0].numbers, dy = inputs[1].numbers, dx = outputs[0].numbers;
  WithFunction(call.attributes, [&](auto function) {
    for (size_t i = 0; i < from.size(); ++i) dx[i] = function.Slope(from[i]) * dy[i];
  });
}

}  // namespace

Op op_activation() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

// Its cases are the gradients of activation's.
Op op_activation_grad() {
  return {.infer = GradInfer, .reference = GradReference, .elementwise = true};
}

}  // namespace syntra
