// SPDX-License-Identifier: Apache-2.0
// y = max(a b, 0): a [.., K], b [K, N]. Attributes as for matmul, without transposes. It is one op
// so that kernels can apply the ReLU to results that are still in registers or in a cache. The
// second output is the mask of where y > 0 (kernels/bit_mask.h). Backward: dc = dy where the mask
// has bits, else 0; then as for matmul. A product that reads y alone takes the mask and masks dy
// where it makes it (masked_matmul).
#include "kernels/bit_mask.h"
#include "kernels/math/activation.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  std::vector<TensorType> result = GetOp("matmul").infer(attributes, inputs);
  SYNTRA_CHECK(inputs[1].shape.rank() == 2 && !attributes.Flag("transpose_a") &&
                   !attributes.Flag("transpose_b"),
               "matmul_relu of {} and {}", ToString(inputs[0]), ToString(inputs[1]));
  result.push_back(MaskOf(result[0].shape));
  return result;
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  ReferenceTensor y = outputs[0];
  std::vector<double> passing;  // y where only its mask is needed
  if (!y.present()) {
    y.type.shape = inputs[0].type.shape.With(-1, inputs[1].dim(-1));
    passing.resize(y.type.shape.size());
    y.numbers = passing;
  }
  GetOp("matmul").reference(call, inputs, std::span(&y, 1));
  for (size_t i = 0; i < y.numbers.size(); ++i) {
    double& value = y.numbers[i];
    value = scalar::Relu::Value(value);
    if (value == 0.0 || !outputs[1].present()) continue;
    const auto [word, bit] = MaskBitOf(static_cast<int64_t>(i), y.dim(-1));
    outputs[1].integers[word] |= static_cast<int32_t>(bit);
  }
}

void Gradient(GradientRule& rule) {
  const Value a = rule.input(0), b = rule.input(1), dy = rule.output_gradient(0);
  const Value dc = rule.mask_taken() ? dy
                                     : rule.recorder().Record("activation_grad", {{"kind", "relu"}},
                                                              {rule.output(0), dy})[0];
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
    const TensorType a = {dtype, {2, 5, 19}};
    cases.push_back({DTypeName(dtype), attributes, {a, F32({19, 67})}, {}});
    cases.push_back({DTypeName(dtype) + "_lines", attributes, {a, F32({19, 128})}, {}});
  }
  return cases;
}

}  // namespace

Op op_matmul_relu() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .flops = Flops,
          .masks = true};
}

}  // namespace syntra
