// SPDX-License-Identifier: Apache-2.0
// Examples of a cache of incremental decoding become those of others: y[b, s] = x[parents[b], s]
// for s < length. After it y stays as it is, and so does y[b] where parents[b] is negative.
// x [B, S, C], parents i32 [B], length i32 [1]; updates y [B, S, C] of x's element type. y may be x
// if no parent has a parent.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("take_rows", inputs,
                {{"x", kActivation, 3}, {"parents", kInteger, 1}, {"length", kInteger, 1}});
  CheckShape("take_rows", "parents", inputs[1], {inputs[0].shape[0]});
  CheckShape("take_rows", "length", inputs[2], {1});
  return {inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t examples = inputs[0].dim(0), rows = inputs[0].dim(1), width = inputs[0].dim(2);
  const int64_t length = inputs[2].integers[0];
  SYNTRA_CHECK(length >= 0 && length <= rows, "take_rows: {} of {} rows", length, rows);
  for (int64_t b = 0; b < examples; ++b) {
    const int64_t parent = inputs[1].integers[b];
    SYNTRA_CHECK(parent < examples, "take_rows: example {} of {}", parent, examples);
    if (parent < 0) continue;
    std::copy_n(inputs[0].numbers.begin() + parent * rows * width, length * width,
                outputs[0].numbers.begin() + b * rows * width);
  }
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    cases.push_back({name, {}, {{dtype, {3, 5, 19}}, I32({3}), I32({1})}, FillBetween(0, 2)});
    cases.push_back({name + "_some_stay",
                     {},
                     {{dtype, {9, 4, 16}}, I32({9}), I32({1})},
                     [](int input, std::span<int32_t> values) {
                       FillBetween(input == 1 ? -3 : 2, 3)(input, values);
                     }});
    cases.push_back(
        {name + "_whole", {}, {{dtype, {4, 3, 67}}, I32({4}), I32({1})}, FillBetween(3, 3)});
    cases.push_back(
        {name + "_nothing", {}, {{dtype, {2, 3, 8}}, I32({2}), I32({1})}, FillBetween(0, 0)});
  }
  return cases;
}

}  // namespace

Op op_take_rows() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .updates = true};
}

}  // namespace syntra
