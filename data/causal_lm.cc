// SPDX-License-Identifier: Apache-2.0
// Causal language modelling (Radford et al. 2018, section 3.1): every token of a row is predicted
// from those before it. Rows are cut from documents one after the other, with an EOS after each.
#include <algorithm>

#include "base/error.h"
#include "data/objective.h"

namespace syntra {
namespace {

class CausalLm final : public Objective {
 public:
  explicit CausalLm(const ObjectiveSettings& settings) : segment_tokens_(settings.row.targets) {}

  int64_t segment_tokens() const override { return segment_tokens_; }
  bool marks_documents() const override { return true; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    return {0, raw.targets};
  }

  void Write(const RawExample& raw, RandomKey /*key*/, const ExampleSlots& slots) const override {
    SYNTRA_CHECK(slots.targets.size() == raw.targets.size());
    std::ranges::copy(raw.targets, slots.targets.begin());
  }

 private:
  int64_t segment_tokens_;
};

}  // namespace

std::unique_ptr<Objective> objective_causal_lm(const ObjectiveSettings& settings) {
  return std::make_unique<CausalLm>(settings);
}

}  // namespace syntra
