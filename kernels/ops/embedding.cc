// SPDX-License-Identifier: Apache-2.0
// Rows of a table: y[b, t] = table[ids[b, t]], ids [B, T], table [V, D] f32, y [B, T, D] in
// {dtype}. Backward: dtable[v] = sum of dy over the positions with id v, in position order.
// Attributes {dtype}, of the gradient {vocabulary}.
#include <algorithm>

#include "kernels/operands.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

void CheckId(int64_t id, int64_t vocabulary) {
  SYNTRA_CHECK(id >= 0 && id < vocabulary, "id {} outside a vocabulary of {}", id, vocabulary);
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("embedding", inputs, {{"ids", kInteger, 2}, {"table", kParameter, 2}});
  const Shape& ids = inputs[0].shape;
  return {{ResultDType(attributes), {ids[0], ids[1], inputs[1].shape[1]}}};
}

void Reference(const OpCall&, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto ids = inputs[0].integers;
  const int64_t vocabulary = inputs[1].dim(0), width = inputs[1].dim(1);
  for (size_t i = 0; i < ids.size(); ++i) {
    CheckId(ids[i], vocabulary);
    std::copy_n(&inputs[1].numbers[ids[i] * width], width, &outputs[0].numbers[i * width]);
  }
}

// Only those rows of the table are read that the ids name.
double Bytes(const OpCall& call) {
  const double ids = call.inputs[0].bytes(), y = call.outputs[0].bytes();
  const double rows = call.outputs[0].shape.size() * sizeof(float);
  return ids + rows + (Accumulates(call, 0) ? 2 : 1) * y;
}

void Gradient(GradientRule& rule) {
  const int64_t vocabulary = rule.recorder().TypeOf(rule.input(1)).shape[0];
  rule.Contribute("embedding_grad", {{"vocabulary", vocabulary}},
                  {rule.input(0), rule.output_gradient(0)}, {1});
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    cases.push_back({name, {{"dtype", name}}, {I32({2, 5}), F32({7, 19})}, FillBetween(0, 6)});
    cases.push_back(
        {name + "_wide", {{"dtype", name}}, {I32({3, 9}), F32({50, 67})}, FillBetween(0, 49)});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("embedding_grad", inputs, {{"ids", kInteger, 2}, {"dy", kActivation, 3}});
  const Shape &ids = inputs[0].shape, &dy = inputs[1].shape;
  CheckShape("embedding_grad", "dy", inputs[1], {ids[0], ids[1], dy[2]});
  return {F32({attributes.Int("vocabulary"), dy[2]})};
}

void GradReference(const OpCall&, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto ids = inputs[0].integers;
  const auto dy = inputs[1].numbers, dtable = outputs[0].numbers;
  const int64_t vocabulary = outputs[0].dim(0), width = outputs[0].dim(1);
  for (size_t i = 0; i < ids.size(); ++i) {
    CheckId(ids[i], vocabulary);
    for (int64_t d = 0; d < width; ++d) dtable[ids[i] * width + d] += dy[i * width + d];
  }
}

// The rows that the ids name are read and written. Before that the whole table is cleared, unless
// the gradient is added to it.
double GradBytes(const OpCall& call) {
  const double ids = call.inputs[0].bytes(), dy = call.inputs[1].bytes();
  const double rows = call.inputs[1].shape.size() * sizeof(float);
  return ids + dy + 2 * rows + (Accumulates(call, 0) ? 0 : call.outputs[0].bytes());
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    cases.push_back(
        {name, {{"vocabulary", 7}}, {I32({2, 5}), {dtype, {2, 5, 19}}}, FillBetween(0, 6)});
    cases.push_back({name + "_repeats",
                     {{"vocabulary", 40}},
                     {I32({3, 33}), {dtype, {3, 33, 67}}},
                     FillBetween(0, 3)});
    cases.push_back({name + "_frequent",
                     {{"vocabulary", 3}},
                     {I32({1, 300}), {dtype, {1, 300, 9}}},
                     FillBetween(0, 1)});
  }
  return cases;
}

}  // namespace

Op op_embedding() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .bytes = Bytes};
}

Op op_embedding_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases, .bytes = GradBytes};
}

}  // namespace syntra
