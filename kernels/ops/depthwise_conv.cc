// SPDX-License-Identifier: Apache-2.0
// A convolution over positions of each column by itself (Wu et al. 2019, "Pay Less Attention with
// Lightweight and Dynamic Convolutions", equations 3 and 5):
//   y[b, t, c] = sum_i w[g(c), i] x[b, t + i - left, c]
// over the taps i whose position lies in the example and, with segments, in t's segment.
//   x A [B, T, C] with columns in G contiguous groups; w f32 [G, K], or [B, T, G * K] for weights
//   of each position's own (then w[b, t, g, i]); segments? i32 [B, T], 0 is padding -> y A.
// Attributes {groups, left}; left is from 0 to K - 1, and K - 1 makes it causal. K is at most 256,
// or any number if w is [C, K] and there are no segments. depthwise_conv_grad: inputs x, w,
// segments?, dy -> dx, dw.
#include "kernels/depthwise_call.h"
#include "kernels/fourier_plan.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

void Check(std::string_view op, const Attributes& attributes, std::span<const TensorType> inputs) {
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  const int64_t groups = attributes.Int("groups"), left = attributes.Int("left");
  SYNTRA_CHECK(groups >= 1 && x[2] % groups == 0, "{}: {} columns in {} groups", op, x[2], groups);
  SYNTRA_CHECK(w.rank() == 3 ? w[2] % groups == 0 : w.rank() == 2 && w[0] == groups,
               "{}: weights {} of {} groups", op, ToString(inputs[1]), groups);
  if (w.rank() == 3) CheckShape(op, "weights", inputs[1], {x[0], x[1], w[2]});
  const int64_t taps = w.rank() == 3 ? w[2] / groups : w[1];
  const bool any_length = w.rank() == 2 && groups == x[2] && !inputs[2].present();
  SYNTRA_CHECK(taps >= 1 && (taps <= DepthwiseCall::kMostTaps || any_length), "{}: {} taps", op,
               taps);
  SYNTRA_CHECK(left >= 0 && left < taps, "{}: {} of {} taps lie before", op, left, taps);
  CheckShape(op, "segments", inputs[2], {x[0], x[1]});
}

// Calls visit(x index, w index, y index) for every multiply-add.
template <typename Visit>
void ForEachProduct(const DepthwiseCall& call, const ReferenceTensor& segments,
                    const Visit& visit) {
  const int32_t* ids = segments.present() ? segments.integers.data() : nullptr;
  for (int64_t row = 0; row < call.rows(); ++row) {
    for (int64_t tap = 0; tap < call.taps; ++tap) {
      const int64_t offset = tap - call.left;
      if (!call.Reads(ids, row, offset)) continue;
      for (int64_t c = 0; c < call.columns; ++c) {
        visit((row + offset) * call.columns + c,
              call.weights_of(row) + call.group_of(c) * call.taps + tap, row * call.columns + c);
      }
    }
  }
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("depthwise_conv", inputs,
                {{"x", kActivation, 3},
                 {"weights", kParameter, kAnyRank},
                 {"segments", kInteger, 2, /*optional=*/true}});
  Check("depthwise_conv", attributes, inputs);
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  ForEachProduct(DepthwiseCall::Of(call), inputs[2], [&](int64_t x, int64_t w, int64_t y) {
    outputs[0].numbers[y] += inputs[1].numbers[w] * inputs[0].numbers[x];
  });
}

void Gradient(GradientRule& rule) {
  rule.Contribute("depthwise_conv_grad", rule.attributes(),
                  {rule.input(0), rule.input(1), rule.input(2), rule.output_gradient(0)}, {0, 1});
}

double Flops(const OpCall& call) {
  const DepthwiseCall depthwise = DepthwiseCall::Of(call);
  const auto products = static_cast<double>(depthwise.rows() * depthwise.columns);
  if (!depthwise.is_long) return 2 * products * static_cast<double>(depthwise.taps);
  // There and back; two columns of real numbers are one of complex ones.
  return FourierFlops(depthwise.transform_length(),
                      static_cast<double>(depthwise.batch * depthwise.columns));
}

double GradFlops(const OpCall& call) {
  return (call.outputs[0].present() + call.outputs[1].present()) * Flops(call);
}

FillIntegers Segments() {
  // A packed row, one with padding, and so on.
  return [](int, std::span<int32_t> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = i % 11 < 4 ? 1 : i % 11 < 9 ? 2 : 0;
  };
}

// With dy after the inputs for the gradient.
std::vector<OpCase> CasesOf(bool gradient) {
  std::vector<OpCase> cases;
  const auto add = [&](const std::string& name, int64_t groups, int64_t left, TensorType x,
                       Shape weights, bool segments) {
    const Shape& shape = x.shape;
    OpCase result{name,
                  {{"groups", groups}, {"left", left}},
                  {x, F32(weights), segments ? I32({shape[0], shape[1]}) : None()},
                  Segments()};
    if (gradient) result.inputs.push_back(x);
    cases.push_back(std::move(result));
  };
  add("centred", 3, 2, F32({2, 7, 57}), {3, 5}, false);
  add("causal_segments", 2, 3, F32({2, 11, 38}), {2, 4}, true);
  add("a_filter_a_column", 19, 4, F32({1, 11, 19}), {19, 9}, true);
  add("one_tap", 1, 0, F32({2, 3, 8}), {1, 1}, false);
  add("own_weights", 3, 1, F32({2, 7, 57}), {2, 7, 9}, false);
  add("own_weights_segments", 2, 2, F32({2, 11, 34}), {2, 11, 6}, true);
  add("own_weights_a_column", 19, 1, F32({1, 5, 19}), {1, 5, 57}, false);
  add("bf16", 2, 1, BF16({2, 6, 38}), {2, 3}, true);
  add("bf16_own_weights", 2, 1, BF16({2, 6, 38}), {2, 6, 6}, true);
  add("long_causal", 2, 270, F32({2, 130, 2}), {2, 271}, false);
  add("long_both_ways", 37, 30, F32({1, 29, 37}), {37, 257}, false);
  add("bf16_long", 3, 0, BF16({2, 20, 3}), {3, 257}, false);
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("depthwise_conv_grad", inputs,
                {{"x", kActivation, 3},
                 {"weights", kParameter, kAnyRank},
                 {"segments", kInteger, 2, /*optional=*/true},
                 {"dy", kActivation, 3}});
  Check("depthwise_conv_grad", attributes, inputs);
  CheckType("depthwise_conv_grad", "dy", inputs[3], inputs[0]);
  return {inputs[0], inputs[1]};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  ForEachProduct(DepthwiseCall::Of(call), inputs[2], [&](int64_t x, int64_t w, int64_t y) {
    const double dy = inputs[3].numbers[y];
    if (outputs[0].present()) outputs[0].numbers[x] += inputs[1].numbers[w] * dy;
    if (outputs[1].present()) outputs[1].numbers[w] += inputs[0].numbers[x] * dy;
  });
}

}  // namespace

Op op_depthwise_conv() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = [] { return CasesOf(/*gradient=*/false); },
          .flops = Flops};
}

Op op_depthwise_conv_grad() {
  return {.infer = GradInfer,
          .reference = GradReference,
          .cases = [] { return CasesOf(/*gradient=*/true); },
          .flops = GradFlops};
}

}  // namespace syntra
