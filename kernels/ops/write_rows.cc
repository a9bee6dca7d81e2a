// SPDX-License-Identifier: Apache-2.0
// Appends to a cache of incremental decoding: cache[b, start + i] = x[b, i] for every b and i.
// x [B, T, C], start i32 [1]; updates cache [B, S, C] of x's element type. {length S}.
#include <algorithm>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("write_rows", inputs, {{"x", kActivation, 3}, {"start", kInteger, 1}});
  const Shape& x = inputs[0].shape;
  CheckShape("write_rows", "start", inputs[1], {1});
  SYNTRA_CHECK(x[1] <= attributes.Int("length"), "write_rows: x {} for {} rows",
               ToString(inputs[0]), attributes.Int("length"));
  return {{inputs[0].dtype, {x[0], attributes.Int("length"), x[2]}}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t start = inputs[1].integers[0];
  const int64_t rows = outputs[0].dim(1), width = outputs[0].dim(2), count = inputs[0].dim(1);
  SYNTRA_CHECK(start >= 0 && start + count <= rows, "write_rows: rows {} to {} of {}", start,
               start + count, rows);
  for (int64_t b = 0; b < outputs[0].dim(0); ++b) {
    std::copy_n(inputs[0].numbers.begin() + b * count * width, count * width,
                outputs[0].numbers.begin() + (b * rows + start) * width);
  }
}

// Only the written rows of the cache count.
double Bytes(const OpCall& call) { return call.inputs[1].bytes() + 2 * call.inputs[0].bytes(); }

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    cases.push_back(
        {DTypeName(dtype), {{"length", 5}}, {{dtype, {3, 1, 19}}, I32({1})}, FillBetween(0, 4)});
    cases.push_back({DTypeName(dtype) + "_last",
                     {{"length", 7}},
                     {{dtype, {2, 1, 67}}, I32({1})},
                     FillBetween(6, 6)});
    cases.push_back({DTypeName(dtype) + "_several",
                     {{"length", 9}},
                     {{dtype, {3, 4, 21}}, I32({1})},
                     FillBetween(0, 5)});
  }
  return cases;
}

}  // namespace

Op op_write_rows() {
  return {.infer = Infer, .reference = Reference, .cases = Cases, .bytes = Bytes, .updates = true};
}

}  // namespace syntra
