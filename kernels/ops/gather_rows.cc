// SPDX-License-Identifier: Apache-2.0
// Rows of x along `axis`: y[b, k, ...] = x[b, rows[b, k], ...], b standing for the axes before it.
// x in A, rows i32 [K], the same for every b, or [extents before the axis..., K]; y has x's extents
// but K along the axis. Attributes {axis}.
// Backward, gather_rows_grad: dx[b, r, ...] = sum of dy[b, k, ...] over the k with rows[b, k] = r,
// in their order. Attributes {axis, extent}, the extent of dx along the axis.
#include <algorithm>

#include "kernels/gather_call.h"
#include "kernels/ops/axes.h"

namespace syntra {
namespace {

// Checks that there is one list of rows, or one for each place on the axes before `axis`.
void CheckRows(std::string_view op, const TensorType& x, const TensorType& rows, int axis) {
  if (rows.shape.rank() == 1) return;
  std::vector<int64_t> lists(x.shape.dims().begin(), x.shape.dims().begin() + axis);
  lists.push_back(rows.shape[-1]);
  CheckShape(op, "rows", rows, Shape(lists));
}

// Calls body(b, k, r) for each entry of `rows`.
template <typename Body>
void ForEachRow(const GatherCall& call, std::span<const int32_t> rows, const Body& body) {
  for (int64_t b = 0; b < call.blocks; ++b) {
    for (int64_t k = 0; k < call.count; ++k) {
      const int64_t r = rows[(call.shared ? 0 : b * call.count) + k];
      SYNTRA_CHECK(r >= 0 && r < call.extent, "row {} of {}", r, call.extent);
      body(b, k, r);
    }
  }
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("gather_rows", inputs,
                {{"x", kActivation, kAnyRank}, {"rows", kInteger, AtLeast(1)}});
  const int axis = AxisIn("gather_rows", attributes, inputs[0]);
  CheckRows("gather_rows", inputs[0], inputs[1], axis);
  return {{inputs[0].dtype, inputs[0].shape.With(axis, inputs[1].shape[-1])}};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int axis = AxisIn("gather_rows", call.attributes, inputs[0].type);
  const GatherCall gather = GatherCall::Of(inputs[0].type, inputs[1].type, axis);
  ForEachRow(gather, inputs[1].integers, [&](int64_t b, int64_t k, int64_t r) {
    std::copy_n(inputs[0].numbers.begin() + (b * gather.extent + r) * gather.width, gather.width,
                outputs[0].numbers.begin() + (b * gather.count + k) * gather.width);
  });
}

void Gradient(GradientRule& rule) {
  const int64_t axis = rule.attributes().Int("axis");
  const TensorType& x = rule.recorder().TypeOf(rule.input(0));
  rule.Contribute("gather_rows_grad", {{"axis", axis}, {"extent", x.shape[static_cast<int>(axis)]}},
                  {rule.output_gradient(0), rule.input(1)}, {0});
}

std::vector<OpCase> Cases() {
  const auto along = [](int64_t axis) { return Attributes{{"axis", axis}}; };
  return {{"first", along(0), {F32({7, 19}), I32({5})}, FillBetween(0, 6)},
          {"one_of_each_head", along(1), {F32({3, 9, 67}), I32({1})}, FillBetween(8, 8)},
          {"own_rows", along(2), {F32({2, 3, 5, 8}), I32({2, 3, 11})}, FillBetween(0, 4)},
          {"last", along(1), {F32({3, 5}), I32({4})}, FillBetween(0, 4)},
          {"bf16", along(1), {BF16({3, 6, 33}), I32({3, 9})}, FillBetween(0, 5)}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("gather_rows_grad", inputs,
                {{"dy", kActivation, kAnyRank}, {"rows", kInteger, AtLeast(1)}});
  const int axis = AxisIn("gather_rows_grad", attributes, inputs[0]);
  CheckRows("gather_rows_grad", inputs[0], inputs[1], axis);
  SYNTRA_CHECK(inputs[0].shape[axis] == inputs[1].shape[-1], "gather_rows_grad: {} numbers for {}",
               inputs[1].shape[-1], ToString(inputs[0]));
  return {{inputs[0].dtype, inputs[0].shape.With(axis, attributes.Int("extent"))}};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const int axis = AxisIn("gather_rows_grad", call.attributes, inputs[0].type);
  const GatherCall gather = GatherCall::Of(outputs[0].type, inputs[1].type, axis);
  ForEachRow(gather, inputs[1].integers, [&](int64_t b, int64_t k, int64_t r) {
    const double* from = &inputs[0].numbers[(b * gather.count + k) * gather.width];
    double* to = &outputs[0].numbers[(b * gather.extent + r) * gather.width];
    for (int64_t i = 0; i < gather.width; ++i) to[i] += from[i];
  });
}

void GradGradient(GradientRule& rule) {
  rule.Contribute("gather_rows", {{"axis", rule.attributes().Int("axis")}},
                  {rule.output_gradient(0), rule.input(1)}, {0});
}

std::vector<OpCase> GradCases() {
  const auto into = [](int64_t axis, int64_t extent) {
    return Attributes{{"axis", axis}, {"extent", extent}};
  };
  return {{"first", into(0, 7), {F32({5, 19}), I32({5})}, FillBetween(0, 6)},
          {"repeats", into(1, 3), {F32({2, 40, 67}), I32({40})}, FillBetween(0, 1)},
          {"own_rows", into(2, 5), {F32({2, 3, 11, 8}), I32({2, 3, 11})}, FillBetween(0, 4)},
          {"bf16", into(1, 6), {BF16({3, 19, 33}), I32({3, 19})}, FillBetween(0, 5)}};
}

}  // namespace

Op op_gather_rows() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_gather_rows_grad() {
  return {
      .infer = GradInfer, .reference = GradReference, .gradient = GradGradient, .cases = GradCases};
}

}  // namespace syntra
