// SPDX-License-Identifier: Apache-2.0
// Text to text: inputs and targets as the data has them, with EOS after both.
#include "data/objective.h"
#include "data/with_eos.h"

namespace syntra {
namespace {

class TextToText : public Objective {
 public:
  explicit TextToText(const ObjectiveSettings& settings) : settings_(settings) {}

  int64_t segment_tokens() const override { return 0; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    return {LengthWithEos(raw.inputs, settings_.row.inputs),
            LengthWithEos(raw.targets, settings_.row.targets)};
  }

  bool Cuts(const ExampleLengths& raw) const override {
    return IsCutForEos(raw.inputs, settings_.row.inputs) ||
           IsCutForEos(raw.targets, settings_.row.targets);
  }

  void Write(const RawExample& raw, RandomKey /*key*/, const ExampleSlots& slots) const override {
    CopyWithEos(raw.inputs, settings_.eos, slots.inputs);
    CopyWithEos(raw.targets, settings_.eos, slots.targets);
  }

 private:
  ObjectiveSettings settings_;
};

}  // namespace

std::unique_ptr<Objective> objective_text_to_text(const ObjectiveSettings& settings) {
  return std::make_unique<TextToText>(settings);
}

}  // namespace syntra
