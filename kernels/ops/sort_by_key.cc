// SPDX-License-Identifier: Apache-2.0
// The stable ascending order of keys along the last axis: keys i32 [.., N] -> order and rank, i32
// [.., N]. order[r] is the place of the r-th key, rank[i] the number of keys before that at place
// i; each is the other's inverse. No gradient.
#include <algorithm>
#include <numeric>

#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("sort_by_key", inputs, {{"keys", kInteger, AtLeast(1)}});
  return {inputs[0], inputs[0]};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t width = inputs[0].dim(-1);
  std::vector<int32_t> order(width);
  for (int64_t row = 0; row < inputs[0].type.shape.rows(); ++row) {
    const auto keys = inputs[0].integers.subspan(row * width, width);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int32_t i) { return keys[i]; });
    for (int64_t r = 0; r < width; ++r) {
      if (outputs[0].present()) outputs[0].integers[row * width + r] = order[r];
      if (outputs[1].present()) {
        outputs[1].integers[row * width + order[r]] = static_cast<int32_t>(r);
      }
    }
  }
}

std::vector<OpCase> Cases() {
  return {{"few", {}, {I32({2, 3, 19})}, FillBetween(0, 4)},
          {"many", {}, {I32({3, 301})}, FillBetween(-1000, 1000)},
          {"one", {}, {I32({5, 1})}, FillBetween(0, 4)}};
}

}  // namespace

Op op_sort_by_key() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
