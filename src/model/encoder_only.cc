// SPDX-License-Identifier: Apache-2.0
// An encoder with a classification head (Devlin et al. 2019, "BERT", section 3.2, without its tanh
// layer): one vector for the whole input, its mean or that of the first token, times a matrix with
// a row for each class. The class of an example is its only target.

#include "model/architecture.h"
#include "model/model.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// The mean of the rows x [B, T, D] that are not padding; B vectors [B, 1, D].
Value MeanOfTokens(const Scope& scope, Value x, Value segments) {
  const TensorType type = scope.TypeOf(x);
  const int64_t rows = type.shape[0], length = type.shape[1];
  const Value mask = Reshape(scope, NotZero(scope, segments), {rows, length, 1});
  const Value sum = SumTo(scope, x, {rows, 1, type.shape[2]}, mask);
  // The added number changes only the count of a row without tokens, whose mean is then zero.
  const Value count = AffineMap(scope, SumTo(scope, mask, {rows, 1, 1}), 1, 1e-20);
  return Cast(scope, Multiply(scope, sum, Activation(scope, "reciprocal", count)), type.dtype);
}

// x [B, 1, D] as [B * count, 1, D], those of an example side by side.
Value Repeated(const Scope& scope, Value x, int64_t count) {
  if (count == 1) return x;
  const Shape shape = scope.TypeOf(x).shape;
  const std::vector<Value> copies(count, x);
  return Reshape(scope, Concatenate(scope, 1, copies), {shape[0] * count, 1, shape[2]});
}

class EncoderOnly final : public Architecture {
 public:
  std::vector<Side> sides() const override { return {Side::kEncoder}; }
  std::vector<DataConfig::Objective> objectives() const override { return {}; }
  const RowLayout& layout() const override { return RowsOfOneClass(); }
  Outputs outputs() const override { return Outputs::kClasses; }

  Value RecordHidden(const Model& model, const Scope& root, const BatchShape& shape,
                     int64_t targets_per_input, TrainConfig::Recompute recompute) const override {
    const StackInput input = model.ReadBatch(root, Side::kEncoder, shape.rows, shape.input_length);
    const Value hidden = model.stack(Side::kEncoder).Build(root, input, recompute);
    const bool mean = model.config().classifier().pooling() == ClassifierConfig::MEAN;
    const Value pooled =
        mean ? MeanOfTokens(root, hidden, input.segments) : First(root, hidden, 1, 1);
    return Repeated(root, pooled, targets_per_input);
  }

  InputReading input_reading(const Model&) const override { return InputReading::kEncoder; }
};

}  // namespace

const Architecture& architecture_encoder_only() {
  static const EncoderOnly architecture;
  return architecture;
}

}  // namespace syntra
