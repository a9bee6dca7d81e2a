// SPDX-License-Identifier: Apache-2.0
// The residual sum and T5's RMSNorm (Zhang and Sennrich 2019; no mean, no bias) in one pass:
//   sum = x + dropout(y);  normed = sum * r * scale,  r = 1 / sqrt(mean_d(sum^2) + epsilon).
// x? and y are [B, T, D], scale [D], keys? [B, 2] (needed if rate > 0); r is [B, T] f32. In bf16 r
// is of the sum before it is rounded, and normed of the sum as it is stored.
// Noise is drawn per element (index t * D + d) or once for all t (index d).
// Attributes {epsilon, rate, site, per_element}.
// Backward, with n = d_normed * scale, where d_sum or d_normed may be absent:
//   dx = d_sum + r n - sum r^3 / D * sum_d(n sum)
//   dy = dx * mask;  dscale = sum_{b,t} d_normed sum r
#include <cmath>

#include "kernels/math/random_mask.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// The factor that dropout applies to element (b, t, d): 0 or 1 / (1 - rate).
class Mask {
 public:
  Mask(const Attributes& attributes, const ReferenceTensor& keys, int64_t width)
      : rate_(attributes.Number("rate")),
        site_(static_cast<uint64_t>(attributes.Int("site"))),
        per_element_(attributes.Flag("per_element")),
        width_(width),
        keys_(keys.integers) {}

  double operator()(int64_t b, int64_t t, int64_t d) const {
    if (rate_ == 0.0) return 1.0;
    const int64_t element = per_element_ ? t * width_ + d : d;
    const bool kept = Keeps(RowKey(&keys_[2 * b]), static_cast<uint64_t>(element), site_,
                            static_cast<float>(rate_));
    return kept ? 1.0 / (1.0 - rate_) : 0.0;
  }

 private:
  double rate_;
  uint64_t site_;
  bool per_element_;
  int64_t width_;
  std::span<const int32_t> keys_;
};

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("add_norm", inputs,
                {{"x", kActivation, 3, true},
                 {"y", kActivation, 3},
                 {"scale", kParameter, 1},
                 {"keys", kInteger, 2, true}});
  const TensorType& y = inputs[1];
  CheckType("add_norm", "x", inputs[0], y);
  CheckShape("add_norm", "scale", inputs[2], {y.shape[2]});
  CheckNoise("add_norm", attributes, inputs[3], y.shape[0]);
  return {y, y, F32({y.shape[0], y.shape[1]})};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto &x = inputs[0], &y = inputs[1], &scale = inputs[2];
  const int64_t rows = y.dim(1), width = y.dim(2);
  const Mask mask(call.attributes, inputs[3], width);
  const double epsilon = call.attributes.Number("epsilon");
  std::vector<double> sum(width);
  for (int64_t row = 0; row < y.type.shape.rows(); ++row) {
    double squares = 0.0;
    for (int64_t d = 0; d < width; ++d) {
      const int64_t i = row * width + d;
      sum[d] = (x.present() ? x.numbers[i] : 0.0) + y.numbers[i] * mask(row / rows, row % rows, d);
      squares += sum[d] * sum[d];
    }
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (int64_t d = 0; d < width; ++d) {
      const int64_t i = row * width + d;
      if (outputs[0].present()) outputs[0].numbers[i] = sum[d];
      if (outputs[1].present()) outputs[1].numbers[i] = sum[d] * r * scale.numbers[d];
    }
    if (outputs[2].present()) outputs[2].numbers[row] = r;
  }
}

void Gradient(GradientRule& rule) {
  const Attributes& of = rule.attributes();
  const double rate = of.Number("rate");
  // A norm without y needs no copy of its input.
  const Value sum = !rule.input(0) && rate == 0.0 ? rule.input(1) : rule.output(0);
  const Attributes attributes = {
      {"rate", rate}, {"site", of.Int("site")}, {"per_element", of.Flag("per_element")}};
  const std::vector<Value> inputs = {
      sum,          rule.input(2), rule.output(2), rule.output_gradient(0), rule.output_gradient(1),
      rule.input(3)};
  if (rate > 0.0) {
    rule.Contribute("add_norm_grad", attributes, inputs, {0, 1, 2});
    return;
  }
  const std::vector<Value> gradients = rule.recorder().Record("add_norm_grad", attributes, inputs);
  if (rule.wants(0)) rule.Pass(0, gradients[0]);
  if (rule.wants(1)) rule.Pass(1, gradients[0]);
  if (rule.wants(2)) rule.Pass(2, gradients[2]);
}

std::vector<OpCase> Cases() {
  const auto with = [](double rate, int64_t site, bool per_element) {
    return Attributes{
        {"epsilon", 1e-6}, {"rate", rate}, {"site", site}, {"per_element", per_element}};
  };
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const TensorType small = {dtype, {2, 3, 19}}, wide = {dtype, {2, 5, 67}};
    cases.push_back({name, with(0.0, 0, false), {small, small, F32({19}), None()}, {}});
    cases.push_back({name + "_norm", with(0.0, 0, false), {None(), wide, F32({67}), None()}, {}});
    cases.push_back(
        {name + "_element", with(0.25, 7, true), {small, small, F32({19}), I32({2, 2})}, {}});
    cases.push_back(
        {name + "_shared", with(0.1, 3, false), {wide, wide, F32({67}), I32({2, 2})}, {}});
    cases.push_back(
        {name + "_first", with(0.5, 1, false), {None(), small, F32({19}), I32({2, 2})}, {}});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("add_norm_grad", inputs,
                {{"sum", kActivation, 3},
                 {"scale", kParameter, 1},
                 {"inverse_rms", kParameter, 2},
                 {"d_sum", kActivation, 3, true},
                 {"d_normed", kActivation, 3, true},
                 {"keys", kInteger, 2, true}});
  const Shape& shape = inputs[0].shape;
  SYNTRA_CHECK(inputs[3].present() || inputs[4].present(), "add_norm_grad without a gradient");
  CheckShape("add_norm_grad", "scale", inputs[1], {shape[2]});
  CheckShape("add_norm_grad", "inverse_rms", inputs[2], {shape[0], shape[1]});
  CheckType("add_norm_grad", "d_sum", inputs[3], inputs[0]);
  CheckType("add_norm_grad", "d_normed", inputs[4], inputs[0]);
  CheckNoise("add_norm_grad", attributes, inputs[5], shape[0]);
  const bool noisy = attributes.Number("rate") > 0.0;
  return {inputs[0], noisy ? inputs[0] : None(), F32({shape[2]})};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto sum = inputs[0].numbers, scale = inputs[1].numbers, inverse_rms = inputs[2].numbers;
  const auto &d_sum = inputs[3], &d_normed = inputs[4];
  const auto &dx = outputs[0], &dy = outputs[1], &dscale = outputs[2];
  const int64_t rows = inputs[0].dim(1), width = inputs[0].dim(2);
  const Mask mask(call.attributes, inputs[5], width);
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    const double r = inverse_rms[row];
    double dot = 0.0;
    for (int64_t d = 0; d < width && d_normed.present(); ++d) {
      const int64_t i = row * width + d;
      dot += d_normed.numbers[i] * scale[d] * sum[i];
      if (dscale.present()) dscale.numbers[d] += d_normed.numbers[i] * sum[i] * r;
    }
    for (int64_t d = 0; d < width; ++d) {
      const int64_t i = row * width + d;
      double gradient = d_sum.present() ? d_sum.numbers[i] : 0.0;
      if (d_normed.present()) {
        gradient += r * d_normed.numbers[i] * scale[d] -
                    sum[i] * r * r * r * dot / static_cast<double>(width);
      }
      if (dx.present()) dx.numbers[i] = gradient;
      if (dy.present()) dy.numbers[i] = gradient * mask(row / rows, row % rows, d);
    }
  }
}

std::vector<OpCase> GradCases() {
  const auto with = [](double rate, int64_t site, bool per_element) {
    return Attributes{{"rate", rate}, {"site", site}, {"per_element", per_element}};
  };
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const TensorType a = {dtype, {2, 3, 19}}, wide = {dtype, {2, 5, 67}}, keys = I32({2, 2});
    const TensorType scale = F32({19}), rms = F32({2, 3});
    cases.push_back({name, with(0.0, 0, false), {a, scale, rms, a, a, None()}, {}});
    cases.push_back({name + "_norm",
                     with(0.0, 0, false),
                     {wide, F32({67}), F32({2, 5}), None(), wide, None()},
                     {}});
    cases.push_back({name + "_element", with(0.25, 7, true), {a, scale, rms, a, a, keys}, {}});
    cases.push_back({name + "_shared",
                     with(0.1, 3, false),
                     {wide, F32({67}), F32({2, 5}), wide, wide, keys},
                     {}});
    cases.push_back({name + "_sum", with(0.5, 1, true), {a, scale, rms, a, None(), keys}, {}});
  }
  return cases;
}

}  // namespace

Op op_add_norm() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_add_norm_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
