// SPDX-License-Identifier: Apache-2.0
// Greedy choice: argmax_v of scale * hidden . embedding_v, the lowest index among equals. -1 if a
// logit is NaN or infinity, or all are -infinity: then no token is the best.
// hidden [B, 1, D], embedding [V, D] -> i32 [B, 1].
// Attributes {scale}.
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("linear_argmax", inputs,
                {{"hidden", kActivation, 3}, {"embedding", kParameter, 2}});
  const Shape& hidden = inputs[0].shape;
  CheckShape("linear_argmax", "hidden", inputs[0], {hidden[0], 1, inputs[1].shape[1]});
  return {I32({hidden[0], 1})};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto hidden = inputs[0].numbers, embedding = inputs[1].numbers;
  const int64_t vocabulary = inputs[1].dim(0), width = inputs[1].dim(1);
  const double scale = call.attributes.Number("scale");
  for (int64_t b = 0; b < inputs[0].dim(0); ++b) {
    double best = -INFINITY;
    int32_t index = -1;
    for (int64_t v = 0; v < vocabulary; ++v) {
      double logit = 0.0;
      for (int64_t d = 0; d < width; ++d) logit += hidden[b * width + d] * embedding[v * width + d];
      logit *= scale;
      if (!(logit < INFINITY)) {
        index = -1;
        break;
      }
      if (!(logit > best)) continue;
      best = logit;
      index = static_cast<int32_t>(v);
    }
    outputs[0].integers[b] = index;
  }
}

// Of the logits.
double Flops(const OpCall& call) {
  return 2.0 * call.inputs[0].shape[0] * call.inputs[1].shape.size();
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    cases.push_back({name, {{"scale", 0.25}}, {{dtype, {3, 1, 19}}, F32({41, 19})}, {}});
    cases.push_back({name + "_wide", {{"scale", 1.0}}, {{dtype, {2, 1, 67}}, F32({1000, 67})}, {}});
  }
  return cases;
}

}  // namespace

Op op_linear_argmax() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
