// SPDX-License-Identifier: Apache-2.0
// A decoder alone: inputs and targets stand in one row, and every position reads those before it
// (Radford et al. 2018). Inputs, too, are read from left to right: that is what a decoder with
// states of earlier positions can do with any mixer. With bidirectional_prefix they read each other
// in both directions: T5's prefix LM (Raffel et al. 2020, section 3.2.1).

#include "model/architecture.h"
#include "model/model.h"

namespace syntra {
namespace {

class DecoderOnly final : public Architecture {
 public:
  std::vector<Side> sides() const override { return {Side::kDecoder}; }
  std::vector<DataConfig::Objective> objectives() const override {
    return {DataConfig::CAUSAL_LM, DataConfig::PREFIX_LM};
  }
  const RowLayout& layout() const override { return SharedRows(); }

  Value RecordHidden(const Model& model, const Scope& root, const BatchShape& shape,
                     int64_t targets_per_input, TrainConfig::Recompute recompute) const override {
    const StackInput row =
        model.ReadBatch(root, Side::kDecoder, shape.rows * targets_per_input, shape.target_length);
    return model.stack(Side::kDecoder).Build(root, row, recompute);
  }

  InputReading input_reading(const Model& model) const override {
    return model.stack(Side::kDecoder).prefills() ? InputReading::kPrefill : InputReading::kSteps;
  }

  void RecordInputs(const Model& model, const Scope& root, const DecodeShape& shape,
                    const MixerState& state) const override {
    StackInput row = model.ReadBatch(root, Side::kDecoder, shape.rows(), PrefillLength(shape));
    row.state = state;
    row.length = RowLength(shape);
    model.stack(Side::kDecoder).Build(root, row, TrainConfig::NOTHING);
  }

  Value RecordStep(const Model& model, const Scope& root, const DecodeShape& shape,
                   const MixerState& state) const override {
    StackStep step = model.ReadStep(root, shape.rows());
    step.length = RowLength(shape);
    step.state = state;
    return model.stack(Side::kDecoder).BuildStep(root, step);
  }
};

}  // namespace

const Architecture& architecture_decoder_only() {
  static const DecoderOnly architecture;
  return architecture;
}

}  // namespace syntra
