// SPDX-License-Identifier: Apache-2.0
// T5's encoder-decoder (Raffel et al. 2020): one stack reads the inputs; the other one, which
// attends to it, writes the targets.
#include "model/architecture.h"
#include "model/model.h"

namespace syntra {
namespace {

class EncoderDecoder final : public Architecture {
 public:
  std::vector<Side> sides() const override { return {Side::kEncoder, Side::kDecoder}; }
  std::vector<DataConfig::Objective> objectives() const override {
    return {DataConfig::SPAN_CORRUPTION};
  }
  const RowLayout& layout() const override { return SeparateRows(); }

  Value RecordHidden(const Model& model, const Scope& root, const BatchShape& shape,
                     int64_t targets_per_input, TrainConfig::Recompute recompute) const override {
    const StackInput source = model.ReadBatch(root, Side::kEncoder, shape.rows, shape.input_length);
    const Value hidden = model.stack(Side::kEncoder).Build(root, source, recompute);
    StackInput target =
        model.ReadBatch(root, Side::kDecoder, shape.rows * targets_per_input, shape.target_length);
    target.memory = {hidden, source.segments};
    return model.stack(Side::kDecoder).Build(root, target, recompute);
  }

  InputReading input_reading(const Model&) const override { return InputReading::kEncoder; }

  void RecordInputs(const Model& model, const Scope& root, const DecodeShape& shape,
                    const MixerState& state) const override {
    const Value ids = root.program().Input("encoder_ids", Source(shape));
    const Value hidden =
        model.stack(Side::kEncoder)
            .Build(root, {.embedded = model.Embed(root, ids), .segments = Segments(root, shape)},
                   TrainConfig::NOTHING);
    model.stack(Side::kDecoder).Prepare(root, hidden, state);
  }

  Value RecordStep(const Model& model, const Scope& root, const DecodeShape& shape,
                   const MixerState& state) const override {
    StackStep step = model.ReadStep(root, shape.rows());
    step.length = shape.max_length;
    step.memory_segments = Segments(root, shape);
    step.state = state;
    return model.stack(Side::kDecoder).BuildStep(root, step);
  }

 private:
  static TensorType Source(const DecodeShape& shape) {
    return {DType::kI32, {shape.inputs, shape.input_length}};
  }
  static Value Segments(const Scope& root, const DecodeShape& shape) {
    return root.program().Input("encoder_segments", Source(shape));
  }
};

}  // namespace

const Architecture& architecture_encoder_decoder() {
  static const EncoderDecoder architecture;
  return architecture;
}

}  // namespace syntra
