// SPDX-License-Identifier: Apache-2.0
// Adafactor (Shazeer and Stern 2018), as in Mesh TensorFlow: no momentum, relative step sizes.
// gradient any shape, hyper = (rate, gradient_scale, beta2); updates parameter p and `full`, of
// p's shape, or the factored pair: row lacks p's axis D0 = row_axis, column lacks D1 = column_axis.
// Nothing changes if gradient_scale is not finite.
//   g = gradient * gradient_scale;  u = g^2 + 1e-30;  EMA(s, a) = beta2 s + (1 - beta2) a
//   factored:  row = EMA(row, mean_{D0} u);  column = EMA(column, mean_{D1} u);
//              x = g * rsqrt(row / mean_{D1} row) * rsqrt(column)
//   else:      full = EMA(full, u);  x = g * rsqrt(full)
// and in both cases
//   x /= max(1, RMS(x) / clip_threshold);  p -= rate * max(RMS(p), 1e-3) * x
// Attributes {row_axis, column_axis (-1: not factored), clip_threshold}.
#include <algorithm>
#include <cmath>

#include "kernels/math/optimizers.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

bool Factored(const Attributes& attributes) { return attributes.Int("column_axis") >= 0; }

// The index of element i of a tensor of `shape` after `axis` has been averaged away.
class Projection {
 public:
  Projection(const Shape& shape, int64_t axis) : extent_(shape[static_cast<int>(axis)]) {
    for (int i = static_cast<int>(axis) + 1; i < shape.rank(); ++i) inner_ *= shape[i];
  }
  int64_t operator()(int64_t i) const { return i / (inner_ * extent_) * inner_ + i % inner_; }
  double extent() const { return static_cast<double>(extent_); }

 private:
  int64_t extent_, inner_ = 1;
};

// The mean of `values` along the axis of `to`, one entry for each remaining index.
std::vector<double> Mean(std::span<const double> values, const Projection& to) {
  std::vector<double> mean(values.size() / static_cast<size_t>(to.extent()), 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    mean[to(static_cast<int64_t>(i))] += values[i] / to.extent();
  }
  return mean;
}

void Average(std::span<double> state, std::span<const double> value, double beta2) {
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] = beta2 * state[i] + (1.0 - beta2) * value[i];
  }
}

// x *= rsqrt of the factored estimate of the second moment.
void ScaleFactored(const Shape& shape, int64_t row_axis, int64_t column_axis,
                   std::span<const double> row, std::span<const double> column,
                   std::span<double> x) {
  const Projection to_row(shape, row_axis), to_column(shape, column_axis);
  const Projection row_to_mean(shape.Without(row_axis),
                               column_axis - (row_axis < column_axis ? 1 : 0));
  const std::vector<double> row_mean = Mean(row, row_to_mean);
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t r = to_row(i);
    x[i] /= std::sqrt(row[r] / row_mean[row_to_mean(r)]) * std::sqrt(column[to_column(i)]);
  }
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("adafactor", inputs,
                {{"gradient", kParameter, kAnyRank}, {"hyper", kParameter, 1}});
  CheckShape("adafactor", "hyper", inputs[1], {hyper::kAdafactorSlots});
  if (!Factored(attributes)) return {inputs[0], inputs[0]};
  const Shape& shape = inputs[0].shape;
  const int64_t row_axis = attributes.Int("row_axis"), column_axis = attributes.Int("column_axis");
  SYNTRA_CHECK(row_axis >= 0 && row_axis < shape.rank() && column_axis < shape.rank() &&
                   row_axis != column_axis,
               "adafactor of {} over axes {} and {}", ToString(shape), row_axis, column_axis);
  return {inputs[0], F32(shape.Without(row_axis)), F32(shape.Without(column_axis))};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto hyper = inputs[1].numbers, p = outputs[0].numbers;
  if (!std::isfinite(hyper[hyper::kGradientScale])) return;
  const double rate = hyper[hyper::kRate], beta2 = hyper[hyper::kBeta2];
  const Shape& shape = inputs[0].type.shape;
  std::vector<double> x(inputs[0].numbers.begin(), inputs[0].numbers.end()), u(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] *= hyper[hyper::kGradientScale];
    u[i] = x[i] * x[i] + kAdafactorSquareFloor;
  }
  if (Factored(call.attributes)) {
    const int64_t row_axis = call.attributes.Int("row_axis");
    const int64_t column_axis = call.attributes.Int("column_axis");
    Average(outputs[1].numbers, Mean(u, Projection(shape, row_axis)), beta2);
    Average(outputs[2].numbers, Mean(u, Projection(shape, column_axis)), beta2);
    ScaleFactored(shape, row_axis, column_axis, outputs[1].numbers, outputs[2].numbers, x);
  } else {
    Average(outputs[1].numbers, u, beta2);
    for (size_t i = 0; i < x.size(); ++i) x[i] /= std::sqrt(outputs[1].numbers[i]);
  }
  const double clip = std::max(1.0, RootMeanSquare(x) / call.attributes.Number("clip_threshold"));
  const double step = rate * ParameterScale(RootMeanSquare(p)) / clip;
  for (size_t i = 0; i < p.size(); ++i) p[i] -= step * x[i];
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t row_axis, int64_t column_axis, double clip_threshold) {
    return Attributes{
        {"row_axis", row_axis}, {"column_axis", column_axis}, {"clip_threshold", clip_threshold}};
  };
  return {{"full", with(0, -1, 1.0), {F32({67}), F32({3})}, {}},
          {"full_matrix", with(0, -1, 0.1), {F32({5, 19}), F32({3})}, {}},
          {"factored", with(0, 1, 1.0), {F32({13, 19}), F32({3})}, {}},
          {"factored_swapped", with(1, 0, 100.0), {F32({13, 67}), F32({3})}, {}},
          {"factored_heads", with(2, 1, 1.0), {F32({3, 5, 19}), F32({3})}, {}},
          {"factored_outer", with(0, 2, 0.5), {F32({7, 3, 19}), F32({3})}, {}},
          {"factored_first", with(1, 0, 1.0), {F32({7, 19, 3}), F32({3})}, {}},
          {"factored_apart", with(3, 1, 1.0), {F32({2, 5, 3, 19, 2}), F32({3})}, {}}};
}

}  // namespace

Op op_adafactor() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .updates = true};
}

}  // namespace syntra
