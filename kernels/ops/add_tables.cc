// SPDX-License-Identifier: Apache-2.0
// The broadcast sum of two score tables: a, b [H or 1, T or 1, S] f32 -> [H, T, S]. The gradient of
// each sums over the extents that it was broadcast along.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// Index into a table of `shape` (extents 1 broadcast) of element (h, t, s).
int64_t Index(const Shape& shape, int64_t h, int64_t t, int64_t s) {
  return ((shape[0] == 1 ? 0 : h) * shape[1] + (shape[1] == 1 ? 0 : t)) * shape[2] + s;
}

template <typename Body>
void ForEach(const Shape& shape, const Body& body) {
  for (int64_t h = 0; h < shape[0]; ++h) {
    for (int64_t t = 0; t < shape[1]; ++t) {
      for (int64_t s = 0; s < shape[2]; ++s) body(h, t, s);
    }
  }
}

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("add_tables", inputs, {{"a", kParameter, 3}, {"b", kParameter, 3}});
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  for (int i = 0; i < 3; ++i) {
    SYNTRA_CHECK(a[i] == b[i] || (i < 2 && (a[i] == 1 || b[i] == 1)), "add_tables of {} and {}",
                 ToString(a), ToString(b));
  }
  return {F32({std::max(a[0], b[0]), std::max(a[1], b[1]), a[2]})};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const Shape &a = inputs[0].type.shape, &b = inputs[1].type.shape, &y = outputs[0].type.shape;
  ForEach(y, [&](int64_t h, int64_t t, int64_t s) {
    outputs[0].numbers[Index(y, h, t, s)] =
        inputs[0].numbers[Index(a, h, t, s)] + inputs[1].numbers[Index(b, h, t, s)];
  });
}

void Gradient(GradientRule& rule) {
  const Shape a = rule.recorder().TypeOf(rule.input(0)).shape;
  const Shape b = rule.recorder().TypeOf(rule.input(1)).shape;
  rule.Contribute("add_tables_grad",
                  {{"a_heads", a[0]}, {"a_queries", a[1]}, {"b_heads", b[0]}, {"b_queries", b[1]}},
                  {rule.output_gradient(0)}, {0, 1});
}

std::vector<OpCase> Cases() {
  return {{"same", {}, {F32({2, 3, 19}), F32({2, 3, 19})}, {}},
          {"heads", {}, {F32({1, 3, 19}), F32({4, 3, 19})}, {}},
          {"queries", {}, {F32({2, 5, 67}), F32({2, 1, 67})}, {}},
          {"cross", {}, {F32({3, 1, 19}), F32({1, 5, 19})}, {}}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("add_tables_grad", inputs, {{"d", kParameter, 3}});
  const Shape& d = inputs[0].shape;
  std::vector<TensorType> outputs = {
      F32({attributes.Int("a_heads"), attributes.Int("a_queries"), d[2]}),
      F32({attributes.Int("b_heads"), attributes.Int("b_queries"), d[2]})};
  for (const TensorType& output : outputs) {
    for (int i = 0; i < 2; ++i) {
      SYNTRA_CHECK(output.shape[i] == d[i] || output.shape[i] == 1, "add_tables_grad of {} to {}",
                   ToString(d), ToString(output));
    }
  }
  return outputs;
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const Shape& d = inputs[0].type.shape;
  for (const ReferenceTensor& output : outputs) {
    if (!output.present()) continue;
    std::ranges::fill(output.numbers, 0.0);
    ForEach(d, [&](int64_t h, int64_t t, int64_t s) {
      output.numbers[Index(output.type.shape, h, t, s)] += inputs[0].numbers[Index(d, h, t, s)];
    });
  }
}

std::vector<OpCase> GradCases() {
  const auto to = [](int64_t a_heads, int64_t a_queries, int64_t b_heads, int64_t b_queries) {
    return Attributes{{"a_heads", a_heads},
                      {"a_queries", a_queries},
                      {"b_heads", b_heads},
                      {"b_queries", b_queries}};
  };
  return {{"same", to(2, 3, 2, 3), {F32({2, 3, 19})}, {}},
          {"heads", to(1, 3, 4, 3), {F32({4, 3, 19})}, {}},
          {"queries", to(2, 5, 2, 1), {F32({2, 5, 67})}, {}},
          {"cross", to(3, 1, 1, 5), {F32({3, 5, 19})}, {}}};
}

}  // namespace

Op op_add_tables() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_add_tables_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
