// SPDX-License-Identifier: Apache-2.0
// An encoder that tells which tokens are masked in its inputs (Devlin et al. 2019, "BERT", section
// 3.1), by the same output layer as a decoder's: without the layer that BERT has before it. It is
// what an encoder learns from text before it learns tasks as a classifier.
#include "base/error.h"
#include "model/architecture.h"
#include "model/model.h"

namespace syntra {
namespace {

class EncoderMaskedLm final : public Architecture {
 public:
  std::vector<Side> sides() const override { return {Side::kEncoder}; }
  std::vector<DataConfig::Objective> objectives() const override { return {DataConfig::MASKED_LM}; }
  bool learns_tasks() const override { return false; }
  const RowLayout& layout() const override { return RowsOfTokenPairs(); }
  Outputs outputs() const override { return Outputs::kMaskedTokens; }

  Value RecordHidden(const Model& model, const Scope& root, const BatchShape& shape,
                     int64_t targets_per_input, TrainConfig::Recompute recompute) const override {
    SYNTRA_CHECK(targets_per_input == 1, "{} targets in one place", targets_per_input);
    const StackInput input = model.ReadBatch(root, Side::kEncoder, shape.rows, shape.input_length);
    return model.stack(Side::kEncoder).Build(root, input, recompute);
  }

  InputReading input_reading(const Model&) const override { return InputReading::kEncoder; }
};

}  // namespace

const Architecture& architecture_encoder_masked_lm() {
  static const EncoderMaskedLm architecture;
  return architecture;
}

}  // namespace syntra
