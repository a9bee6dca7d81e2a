// SPDX-License-Identifier: Apache-2.0
// Prefix language modelling (Raffel et al. 2020, section 3.2.3): a row is cut in two at a place
// that is drawn anew each epoch. The tokens before it are inputs, those after it are targets. Rows
// are those of causal language modelling.
#include <algorithm>

#include "base/error.h"
#include "data/objective.h"

namespace syntra {
namespace {

class PrefixLm final : public Objective {
 public:
  explicit PrefixLm(const ObjectiveSettings& settings) : segment_tokens_(settings.row.targets) {}

  int64_t segment_tokens() const override { return segment_tokens_; }
  bool marks_documents() const override { return true; }

  // Every prefix that is not empty and leaves a target is equally likely; a single token has the
  // empty prefix.
  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey key) const override {
    const int64_t choices = raw.targets - 1;
    const int64_t prefix =
        choices > 0 ? 1 + UniformBelow(RandomAt(key, 0)[0], static_cast<uint32_t>(choices)) : 0;
    return {prefix, raw.targets - prefix};
  }

  void Write(const RawExample& raw, RandomKey /*key*/, const ExampleSlots& slots) const override {
    const std::span<const int32_t> tokens = raw.targets;
    SYNTRA_CHECK(slots.inputs.size() + slots.targets.size() == tokens.size());
    std::ranges::copy(tokens.first(slots.inputs.size()), slots.inputs.begin());
    std::ranges::copy(tokens.subspan(slots.inputs.size()), slots.targets.begin());
  }

 private:
  int64_t segment_tokens_;
};

}  // namespace

std::unique_ptr<Objective> objective_prefix_lm(const ObjectiveSettings& settings) {
  return std::make_unique<PrefixLm>(settings);
}

}  // namespace syntra
