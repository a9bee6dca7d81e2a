// SPDX-License-Identifier: Apache-2.0
// c = a b^T where the mask has bits, else 0: a [.., K], b [N, K], mask for [.., N]
// (kernels/bit_mask.h). Attributes as for matmul, with transpose_b. It is the gradient of a ReLU's
// input from that of a product with its result: one op so that kernels can mask results that are
// still in registers or in a cache.
#include "kernels/bit_mask.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() == 3, "masked_matmul takes 3 operands, not {}", inputs.size());
  std::vector<TensorType> result = GetOp("matmul").infer(attributes, inputs.first(2));
  SYNTRA_CHECK(attributes.Flag("transpose_b") && inputs[2] == MaskOf(result[0].shape),
               "masked_matmul of {} and {} with a mask {}", ToString(inputs[0]),
               ToString(inputs[1]), ToString(inputs[2]));
  return result;
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  GetOp("matmul").reference(call, inputs, outputs);
  for (size_t i = 0; i < outputs[0].numbers.size(); ++i) {
    const auto [word, bit] = MaskBitOf(static_cast<int64_t>(i), outputs[0].dim(-1));
    const auto bits = static_cast<uint32_t>(inputs[2].integers[word]);
    if ((bits & bit) == 0) outputs[0].numbers[i] = 0.0;
  }
}

double Flops(const OpCall& call) { return GetOp("matmul").flops(call); }

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const Attributes attributes{
        {"transpose_a", false}, {"transpose_b", true}, {"dtype", DTypeName(dtype)}};
    const auto add = [&](const char* name, int64_t columns) {
      const Shape shape = {2, 5, columns};
      cases.push_back({DTypeName(dtype) + name,
                       attributes,
                       {{dtype, {2, 5, 19}}, F32({columns, 19}), MaskOf(shape)},
                       {}});
    };
    add("", 67);
    add("_lines", 256);
  }
  return cases;
}

}  // namespace

Op op_masked_matmul() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
