// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given tokens under the softmax over the vocabulary: with
// l_v = scale * hidden . embedding_v, y = l_{target - first} - log sum_v exp(l_v), and 0 where
// target < first.
// hidden [B, T, D], embedding [V, D], targets i32 [B, T] -> f32 [B, T].
// Attributes {scale, first}.
#include <algorithm>
#include <cmath>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands(
      "linear_log_probability", inputs,
      {{"hidden", kActivation, 3}, {"embedding", kParameter, 2}, {"targets", kInteger, 2}});
  const Shape& hidden = inputs[0].shape;
  CheckShape("linear_log_probability", "embedding", inputs[1], {inputs[1].shape[0], hidden[2]});
  CheckShape("linear_log_probability", "targets", inputs[2], {hidden[0], hidden[1]});
  return {F32({hidden[0], hidden[1]})};
}

double LogProbability(std::span<const double> logits, int64_t target) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return logits[target] - largest - std::log(sum);
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto hidden = inputs[0].numbers, embedding = inputs[1].numbers;
  const auto targets = inputs[2].integers;
  const int64_t vocabulary = inputs[1].dim(0), width = inputs[1].dim(1);
  const double scale = call.attributes.Number("scale");
  std::vector<double> logits(vocabulary);
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t target = targets[i] - call.attributes.Int("first");
    if (target < 0) continue;
    SYNTRA_CHECK(target < vocabulary, "target {} outside a vocabulary of {}", targets[i],
                 vocabulary);
    for (int64_t v = 0; v < vocabulary; ++v) {
      double dot = 0.0;
      for (int64_t d = 0; d < width; ++d) dot += hidden[i * width + d] * embedding[v * width + d];
      logits[v] = scale * dot;
    }
    outputs[0].numbers[i] = LogProbability(logits, target);
  }
}

// Of the logits.
double Flops(const OpCall& call) {
  return 2.0 * call.inputs[2].shape.size() * call.inputs[1].shape.size();
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    cases.push_back({name,
                     {{"scale", 0.25}, {"first", int64_t{1}}},
                     {{dtype, {2, 3, 19}}, F32({13, 19}), I32({2, 3})},
                     FillBetween(-1, 12)});
    cases.push_back({name + "_wide",
                     {{"scale", 0.12}, {"first", int64_t{0}}},
                     {{dtype, {3, 7, 67}}, F32({3001, 67}), I32({3, 7})},
                     FillBetween(0, 3000)});
  }
  return cases;
}

}  // namespace

Op op_linear_log_probability() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
