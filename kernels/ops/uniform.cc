// SPDX-License-Identifier: Apache-2.0
// Numbers that are equally likely anywhere in (0, 1): y f32 {shape}, [B, ..], keys i32 [B, 2].
// Element e of a row is OpenUniform of word e % 4 of RandomAt(key, e / 4, site). No gradient.
// Attributes {shape, site}.
#include "kernels/math/random_mask.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("uniform", inputs, {{"keys", kInteger, 2}});
  const Shape y(attributes.List("shape"));
  SYNTRA_CHECK(y.rank() >= 1, "uniform: {}", ToString(y));
  CheckShape("uniform", "keys", inputs[0], {y[0], 2});
  return {F32(y)};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto site = static_cast<uint64_t>(call.attributes.Int("site"));
  const auto y = outputs[0].numbers;
  const int64_t width = std::ssize(y) / outputs[0].dim(0);
  for (int64_t i = 0; i < std::ssize(y); ++i) {
    const RandomKey key = RowKey(&inputs[0].integers[2 * (i / width)]);
    y[i] = OpenUniform(key, static_cast<uint64_t>(i % width), site);
  }
}

std::vector<OpCase> Cases() {
  const auto shaped = [](Attributes::Integers shape, int64_t site) {
    return Attributes{{"shape", std::move(shape)}, {"site", site}};
  };
  return {{"rows", shaped({3, 67}, 4), {I32({3, 2})}, {}},
          {"blocks", shaped({2, 3, 5, 5}, 0), {I32({2, 2})}, {}},
          {"wide", shaped({2, 1031}, 7), {I32({2, 2})}, {}}};
}

}  // namespace

Op op_uniform() { return {.infer = Infer, .reference = Reference, .cases = Cases}; }

}  // namespace syntra
