// SPDX-License-Identifier: Apache-2.0
// y = max(a b, 0): a [.., K], b [K, N]. Attributes as for matmul, without transposes. It is one op
// because every library can apply the ReLU to sums in registers. Backward from the result: dc = dy
// where y > 0, else 0; then as for matmul.
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  std::vector<TensorType> result = GetOp("matmul").infer(attributes, inputs);
  SYNTRA_CHECK(inputs[1].shape.rank() == 2 && !attributes.Flag("transpose_a") &&
                   !attributes.Flag("transpose_b"),
               "matmul_relu of {} and {}", ToString(inputs[0]), ToString(inputs[1]));
  return result;
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  GetOp("matmul").reference(call, inputs, outputs);
  for (double& y : outputs[0].numbers) y = y > 0.0 ? y : 0.0;
}

void Gradient(GradientRule& rule) {
  const Value a = rule.input(0), b = rule.input(1);
  const Value dc = rule.recorder().Record("activation_grad", {{"kind", "relu"}},
                                          {rule.output(0), rule.output_gradient(0)})[0];
  const auto product = [&](bool transpose_a, bool transpose_b, Value of) {
    return Attributes{{"transpose_a", transpose_a},
                      {"transpose_b", transpose_b},
                      {"dtype", DTypeName(rule.recorder().TypeOf(of).dtype)}};
  };
  rule.Contribute("matmul", product(false, true, a), {dc, b}, {0});
  rule.Contribute("matmul", product(true, false, b), {a, dc}, {1});
}

double Flops(const OpCall& call) { return GetOp("matmul").flops(call); }

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const Attributes attributes{
        {"transpose_a", false}, {"transpose_b", false}, {"dtype", DTypeName(dtype)}};
    cases.push_back({DTypeName(dtype), attributes, {{dtype, {2, 5, 19}}, F32({19, 67})}, {}});
  }
  return cases;
}

}  // namespace

Op op_matmul_relu() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
