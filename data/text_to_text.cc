// SPDX-License-Identifier: Apache-2.0
// Text to text: inputs and targets as the data has them, each cut to one less than its length, and
// EOS after both (Raffel et al. 2020, section 2.4; append_eos_after_trim of their code).
#include <algorithm>

#include "base/error.h"
#include "data/objective.h"

namespace syntra {
namespace {

class TextToText : public Objective {
 public:
  explicit TextToText(const ObjectiveSettings& settings) : settings_(settings) {}

  int64_t segment_tokens() const override { return 0; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    return {std::min(raw.inputs + 1, settings_.row.inputs),
            std::min(raw.targets + 1, settings_.row.targets)};
  }

  bool Cuts(const ExampleLengths& raw) const override {
    return raw.inputs >= settings_.row.inputs || raw.targets >= settings_.row.targets;
  }

  void Write(const RawExample& raw, RandomKey /*key*/, const ExampleSlots& slots) const override {
    CopyWithEos(raw.inputs, slots.inputs);
    CopyWithEos(raw.targets, slots.targets);
  }

 private:
  void CopyWithEos(std::span<const int32_t> ids, std::span<int32_t> slots) const {
    SYNTRA_CHECK(!slots.empty() && slots.size() <= ids.size() + 1, "{} slots for {} ids and EOS",
                 slots.size(), ids.size());
    std::ranges::copy(ids.first(slots.size() - 1), slots.begin());
    slots.back() = settings_.eos;
  }

  ObjectiveSettings settings_;
};

}  // namespace

std::unique_ptr<Objective> objective_text_to_text(const ObjectiveSettings& settings) {
  return std::make_unique<TextToText>(settings);
}

}  // namespace syntra
