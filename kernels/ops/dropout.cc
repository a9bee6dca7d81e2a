// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014) with counter-based masks: y = x / (1 - rate) if kept, else 0.
// x [B, T, D], keys [B, 2]. `group` consecutive elements of D share a random draw. Unless
// per_element, all t share it too. Noise index: (t * (D / group) if per_element) + d / group. The
// gradient applies the same mask. Attributes {rate, site, per_element, group}.
#include "kernels/math/random_mask.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("dropout", inputs, {{"x", kActivation, 3}, {"keys", kInteger, 2, true}});
  const int64_t group = attributes.Int("group");
  SYNTRA_CHECK(group >= 1 && inputs[0].shape[2] % group == 0, "dropout: {} in groups of {}",
               ToString(inputs[0]), group);
  CheckNoise("dropout", attributes, inputs[1], inputs[0].shape[0]);
  return {inputs[0]};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto x = inputs[0].numbers, y = outputs[0].numbers;
  const double rate = call.attributes.Number("rate");
  const auto site = static_cast<uint64_t>(call.attributes.Int("site"));
  const bool per_element = call.attributes.Flag("per_element");
  const int64_t group = call.attributes.Int("group");
  const int64_t rows = inputs[0].dim(1), width = inputs[0].dim(2);
  for (int64_t i = 0; i < inputs[0].type.shape.size(); ++i) {
    const int64_t d = i % width, t = i / width % rows, b = i / width / rows;
    const int64_t element = (per_element ? t * (width / group) : 0) + d / group;
    const bool kept =
        rate == 0.0 || Keeps(RowKey(&inputs[1].integers[2 * b]), static_cast<uint64_t>(element),
                             site, static_cast<float>(rate));
    y[i] = kept ? x[i] / (1.0 - rate) : 0.0;
  }
}

void Gradient(GradientRule& rule) {
  rule.Contribute("dropout", rule.attributes(), {rule.output_gradient(0), rule.input(1)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](double rate, int64_t site, bool per_element, int64_t group) {
    return Attributes{
        {"rate", rate}, {"site", site}, {"per_element", per_element}, {"group", group}};
  };
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const TensorType odd = {dtype, {2, 3, 19}}, even = {dtype, {3, 5, 66}};
    const TensorType keys = I32({2, 2}), more_keys = I32({3, 2});
    cases.push_back({name + "_element", with(0.1, 2, true, 1), {odd, keys}, {}});
    cases.push_back({name + "_shared", with(0.5, 5, false, 1), {odd, keys}, {}});
    cases.push_back({name + "_heads", with(0.25, 9, true, 11), {even, more_keys}, {}});
    cases.push_back({name + "_shared_heads", with(0.7, 1, false, 6), {even, more_keys}, {}});
    cases.push_back({name + "_none", with(0.0, 0, true, 1), {odd, None()}, {}});
  }
  return cases;
}

}  // namespace

Op op_dropout() {
  return {.infer = Infer,
          .reference = Reference,
          .gradient = Gradient,
          .cases = Cases,
          .elementwise = true};
}

}  // namespace syntra
