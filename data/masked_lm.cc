// SPDX-License-Identifier: Apache-2.0
// Masked language modelling (Devlin et al. 2019, "BERT", section 3.1): some tokens of a row are
// predicted from all the others. Of the chosen ones, 80 % are masked in the inputs, 10 % are
// replaced by a random token, and 10 % stay as they are. Rows are those of causal language
// modelling, so an EOS between documents may be among them.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/batch.h"
#include "data/objective.h"
#include "data/random_choice.h"

namespace syntra {
namespace {

// Independent streams of one example's key.
constexpr uint64_t kChoiceStream = 0, kReplacementStream = 1;
constexpr float kMasked = 0.8F, kMaskedOrRandom = 0.9F;

class MaskedLm final : public Objective {
 public:
  explicit MaskedLm(const ObjectiveSettings& settings) : settings_(settings) {}

  // Each token is an input, and perhaps a target.
  int64_t segment_tokens() const override {
    return std::min(settings_.row.inputs, settings_.row.targets);
  }
  bool marks_documents() const override { return true; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    return {raw.targets, raw.targets};
  }

  // Targets stand where their tokens do.
  void Write(const RawExample& raw, RandomKey key, const ExampleSlots& slots) const override {
    const std::span<const int32_t> tokens = raw.targets;
    SYNTRA_CHECK(slots.inputs.size() == tokens.size() && slots.targets.size() == tokens.size());
    const auto length = std::ssize(tokens);
    std::vector<uint8_t> chosen(length);
    const auto count = std::lround(static_cast<double>(length) * settings_.noise_density);
    ChooseAtRandom(std::clamp<int64_t>(count, 1, length), key, kChoiceStream, chosen);
    for (int64_t i = 0; i < length; ++i) {
      slots.targets[i] = chosen[i] ? tokens[i] : kIgnoredTarget;
      slots.inputs[i] = chosen[i] ? Replacement(tokens[i], key, i) : tokens[i];
    }
  }

 private:
  // The token that the model reads in place of a chosen one.
  int32_t Replacement(int32_t token, RandomKey key, int64_t place) const {
    const RandomBits bits = RandomAt(key, place, kReplacementStream);
    const float share = UniformFloat(bits[0]);
    if (share < kMasked) return settings_.first_sentinel;
    if (share >= kMaskedOrRandom) return token;
    // The tokenizer's pieces lie between padding, which is 0, and the sentinels.
    const int32_t pieces = settings_.first_sentinel - settings_.sentinels;
    return 1 + static_cast<int32_t>(UniformBelow(bits[1], static_cast<uint32_t>(pieces)));
  }

  ObjectiveSettings settings_;
};

}  // namespace

std::unique_ptr<Objective> objective_masked_lm(const ObjectiveSettings& settings) {
  return std::make_unique<MaskedLm>(settings);
}

}  // namespace syntra
