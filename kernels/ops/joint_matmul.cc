// SPDX-License-Identifier: Apache-2.0
// joint_matmul: products of one a with n matrices, c_i = a b_i, as those of matmul without
// transposes: a [.., K], b_i f32 [K, N_i], c_i [.., N_i], attributes as there. The results lie side
// by side where memory allows it: then the call is one product with [b_1 | b_2 | .. | b_n].
//
// joint_matmul_grad: of a, b_i and the gradients dc_i, which may be absent,
//   da = sum_i dc_i b_i^T, one sum in f32, and db_i = a^T dc_i, which is absent with dc_i.
#include "kernels/joint_matmul_call.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() > 1 && inputs.size() <= 1 + kMostJoined, "joint_matmul of {} operands",
               inputs.size());
  SYNTRA_CHECK(!attributes.Flag("transpose_a") && !attributes.Flag("transpose_b"),
               "joint_matmul: {}", attributes.ToString());
  std::vector<TensorType> outputs;
  for (const TensorType& b : inputs.subspan(1)) {
    outputs.push_back(GetOp("matmul").infer(attributes, std::array{inputs[0], b})[0]);
  }
  return outputs;
}

// A call of matmul with these operands, for its checks, its reference and its FLOPs.
OpCall Matmul(bool transpose_a, bool transpose_b, const TensorType& a, const TensorType& b) {
  const Attributes attributes{
      {"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"dtype", std::string("f32")}};
  return {attributes, {a, b}, {}, {}};
}

std::vector<TensorType> InferGradient(const Attributes&, std::span<const TensorType> inputs) {
  const size_t matrices = JointMatrices(inputs);
  std::vector<TensorType> outputs = {inputs[0]};
  bool any = false;
  for (size_t i = 0; i < matrices; ++i) {
    const TensorType &b = inputs[1 + i], &dc = inputs[1 + matrices + i];
    outputs.push_back(dc.present() ? b : None());
    if (!dc.present()) continue;
    any = true;
    const OpCall product = Matmul(false, false, inputs[0], b);
    const TensorType c = GetOp("matmul").infer(product.attributes, product.inputs)[0];
    SYNTRA_CHECK(HasKind(dc, kActivation) && dc.shape == c.shape,
                 "joint_matmul_grad: a gradient is {}, not {}", ToString(dc), ToString(c.shape));
  }
  SYNTRA_CHECK(any, "joint_matmul_grad without a gradient");
  return outputs;
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const Op& matmul = GetOp("matmul");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    const std::array operands{inputs[0], inputs[1 + i]};
    matmul.reference(Matmul(false, false, operands[0].type, operands[1].type), operands,
                     outputs.subspan(i, 1));
  }
}

void ReferenceGradient(const OpCall& call, std::span<const ReferenceTensor> inputs,
                       std::span<const ReferenceTensor> outputs) {
  const Op& matmul = GetOp("matmul");
  const size_t matrices = JointMatrices(call.inputs);
  for (size_t i = 0; i < matrices; ++i) {
    const ReferenceTensor &b = inputs[1 + i], &dc = inputs[1 + matrices + i];
    if (!dc.present()) continue;
    if (outputs[0].present()) {  // to which the reference of matmul adds
      const std::array operands{dc, b};
      matmul.reference(Matmul(false, true, dc.type, b.type), operands, outputs.first(1));
    }
    if (outputs[1 + i].present()) {
      const std::array operands{inputs[0], dc};
      matmul.reference(Matmul(true, false, operands[0].type, dc.type), operands,
                       outputs.subspan(1 + i, 1));
    }
  }
}

void Gradient(GradientRule& rule) {
  const int matrices = rule.inputs() - 1;
  std::vector<Value> inputs;
  std::vector<int> targets = {0};
  for (int i = 0; i < rule.inputs(); ++i) inputs.push_back(rule.input(i));
  for (int i = 0; i < matrices; ++i) {
    inputs.push_back(rule.output_gradient(i));
    targets.push_back(inputs.back() ? 1 + i : -1);
  }
  rule.Contribute("joint_matmul_grad", {}, std::move(inputs), std::move(targets));
}

// The FLOPs of the product with the i-th matrix.
double FlopsWith(const OpCall& call, size_t i) {
  return GetOp("matmul").flops(Matmul(false, false, call.inputs[0], call.inputs[1 + i]));
}

double Flops(const OpCall& call) {
  double flops = 0;
  for (size_t i = 0; i + 1 < call.inputs.size(); ++i) flops += FlopsWith(call, i);
  return flops;
}

double GradientFlops(const OpCall& call) {
  const size_t matrices = JointMatrices(call.inputs);
  double flops = 0;
  for (size_t i = 0; i < matrices; ++i) {
    if (!call.inputs[1 + matrices + i].present()) continue;
    flops += (call.outputs[0].present() + call.outputs[1 + i].present()) * FlopsWith(call, i);
  }
  return flops;
}

OperandRange Results(const OpCall& call) { return {true, 0, call.inputs.size() - 1}; }
OperandRange Gradients(const OpCall& call) {
  const size_t matrices = JointMatrices(call.inputs);
  return {false, 1 + matrices, matrices};
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const auto add = [&](const char* what, const Shape& a, std::initializer_list<int64_t> widths) {
      OpCase made{name + what,
                  {{"transpose_a", false}, {"transpose_b", false}, {"dtype", name}},
                  {{dtype, a}},
                  {}};
      for (const int64_t width : widths) made.inputs.push_back(F32({a[-1], width}));
      cases.push_back(std::move(made));
    };
    add("", {2, 5, 19}, {67, 3, 8});
    add("_heads", {2, 160, 64}, {128, 64, 64});
    add("_one", {7, 32}, {16});
  }
  return cases;
}

}  // namespace

Op op_joint_matmul() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .flops = Flops,
          .side_by_side = Results};
}

Op op_joint_matmul_grad() {
  return {.infer = InferGradient,
          .reference = ReferenceGradient,
          .flops = GradientFlops,
          .side_by_side = Gradients};
}

}  // namespace syntra
