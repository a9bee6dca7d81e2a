// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter 2019). gradient any shape, hyper = (rate, gradient_scale,
// bias1 = 1 - beta1^t, bias2 = 1 - beta2^t, weight_decay) (math/hyperparameters.h); updates
// parameter p, m and v. Nothing changes if gradient_scale is not finite.
//   g = gradient * gradient_scale;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
// plain, as in torch:
//   p -= rate * weight_decay * p;  p -= rate * (m / bias1) / (sqrt(v / bias2) + epsilon)
// rms_scaled, as in nanoT5, whose floor is that of Adafactor:
//   step = rate * max(1e-3, RMS(p)) * sqrt(bias2) / bias1
//   p -= step * m / (sqrt(v) + epsilon);  p -= rate * weight_decay * p
// Attributes {beta1, beta2, epsilon, rms_scaled}.
#include <cmath>

#include "kernels/math/optimizers.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("adamw", inputs, {{"gradient", kParameter, kAnyRank}, {"hyper", kParameter, 1}});
  CheckShape("adamw", "hyper", inputs[1], {hyper::kAdamWSlots});
  return {inputs[0], inputs[0], inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto gradient = inputs[0].numbers, hyper = inputs[1].numbers;
  const auto p = outputs[0].numbers, m = outputs[1].numbers, v = outputs[2].numbers;
  const double rate = hyper[hyper::kRate], scale = hyper[hyper::kGradientScale];
  const double bias1 = hyper[hyper::kBias1], bias2 = hyper[hyper::kBias2];
  const double decay = rate * hyper[hyper::kWeightDecay];
  const double beta1 = call.attributes.Number("beta1"), beta2 = call.attributes.Number("beta2");
  const double epsilon = call.attributes.Number("epsilon");
  if (!std::isfinite(scale)) return;
  const bool rms_scaled = call.attributes.Flag("rms_scaled");
  const double step = rate * ParameterScale(RootMeanSquare(p)) * std::sqrt(bias2) / bias1;
  for (size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] * scale;
    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
    v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
    if (rms_scaled) {
      p[i] -= step * m[i] / (std::sqrt(v[i]) + epsilon);
      p[i] -= decay * p[i];
    } else {
      p[i] -= decay * p[i];
      p[i] -= rate * (m[i] / bias1) / (std::sqrt(v[i] / bias2) + epsilon);
    }
  }
}

std::vector<OpCase> Cases() {
  const auto with = [](double epsilon, bool rms_scaled) {
    return Attributes{
        {"beta1", 0.9}, {"beta2", 0.98}, {"epsilon", epsilon}, {"rms_scaled", rms_scaled}};
  };
  return {{"vector", with(1e-8, false), {F32({19}), F32({5})}, {}},
          {"matrix", with(1e-6, false), {F32({13, 67}), F32({5})}, {}},
          {"rms_scaled", with(1e-6, true), {F32({19}), F32({5})}, {}},
          {"rms_scaled_matrix", with(1e-6, true), {F32({13, 67}), F32({5})}, {}}};
}

}  // namespace

Op op_adamw() { return {.infer = Infer, .reference = Reference, .cases = Cases, .updates = true}; }

}  // namespace syntra
