// SPDX-License-Identifier: Apache-2.0
// The real part of a discrete Fourier transform over columns and positions (Lee-Thorp et al. 2021,
// "FNet", equation 3), of sequences that zeros extend to N positions:
//   y[b, j, k] = factor * sum_t sum_c x[b, t, c] cos(2 pi (j t / N + k c / D)),  j < T
// x A [B, T, D], N >= T -> y A. It is its own transpose, so its gradient is the same of dy.
// Attributes {period, factor}; the period is N.
#include <complex>
#include <numbers>

#include "kernels/fourier_plan.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("fourier_transform", inputs, {{"x", kActivation, 3}});
  const int64_t period = attributes.Int("period"), length = inputs[0].shape[1];
  SYNTRA_CHECK(period >= length, "fourier_transform: {} positions of {}", length, period);
  return {inputs[0]};
}

// y[k] = sum_n x[n] exp(-2 pi i k n / period) for as many k as there are n, in numbers `stride`
// apart.
void TransformNaively(int64_t count, int64_t period, int64_t stride, double* re, double* im) {
  std::vector<std::complex<double>> x(count);
  for (int64_t n = 0; n < count; ++n) x[n] = {re[n * stride], im[n * stride]};
  for (int64_t k = 0; k < count; ++k) {
    std::complex<double> sum = 0;
    for (int64_t n = 0; n < count; ++n) {
      const double turns = static_cast<double>(k * n % period) / static_cast<double>(period);
      sum += x[n] * std::polar(1.0, -2 * std::numbers::pi * turns);
    }
    re[k * stride] = sum.real();
    im[k * stride] = sum.imag();
  }
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const Shape& shape = inputs[0].type.shape;
  const int64_t length = shape[1], width = shape[2], elements = length * width;
  for (int64_t b = 0; b < shape[0]; ++b) {
    const auto x = inputs[0].numbers.subspan(b * elements, elements);
    std::vector<double> re(x.begin(), x.end()), im(elements);
    for (int64_t t = 0; t < length; ++t) {
      TransformNaively(width, width, 1, &re[t * width], &im[t * width]);
    }
    for (int64_t c = 0; c < width; ++c) {
      TransformNaively(length, call.attributes.Int("period"), width, &re[c], &im[c]);
    }
    for (int64_t i = 0; i < elements; ++i) {
      outputs[0].numbers[b * elements + i] = call.attributes.Number("factor") * re[i];
    }
  }
}

void Gradient(GradientRule& rule) {
  rule.Contribute("fourier_transform", rule.attributes(), {rule.output_gradient(0)}, {0});
}

// By the usual count; numbers that are real take half of it.
double Flops(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const int64_t period = call.attributes.Int("period"), width = shape[2];
  return (FourierFlops(period, static_cast<double>(width)) +
          FourierFlops(width, static_cast<double>(period))) *
         static_cast<double>(shape[0]) / 2;
}

std::vector<OpCase> Cases() {
  const auto with = [](const std::string& name, int64_t period, double factor, TensorType x) {
    return OpCase{name, {{"period", period}, {"factor", factor}}, {x}, {}};
  };
  return {with("powers_of_two", 32, 1.0, F32({2, 32, 16})),
          with("zeros_behind", 24, 0.5, F32({3, 10, 30})),
          with("more_than_half", 21, 1.0, F32({1, 17, 7})),
          with("primes", 13, 1.0, F32({2, 13, 37})),
          with("one_position", 1, 1.0, F32({2, 1, 8})),
          with("one_column", 8, 1.0, F32({1, 5, 1})),
          with("many_columns", 6, 0.1, F32({1, 6, 135})),
          with("bf16", 48, 0.05, BF16({2, 33, 64}))};
}

}  // namespace

Op op_fourier_transform() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

}  // namespace syntra
