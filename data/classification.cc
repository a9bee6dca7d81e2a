// SPDX-License-Identifier: Apache-2.0
// Classification: inputs as the data has them, with EOS after them; the only target is the id of
// the class.
#include "base/error.h"
#include "data/objective.h"
#include "data/with_eos.h"

namespace syntra {
namespace {

class Classification : public Objective {
 public:
  explicit Classification(const ObjectiveSettings& settings) : settings_(settings) {}

  int64_t segment_tokens() const override { return 0; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    return {LengthWithEos(raw.inputs, settings_.row.inputs), 1};
  }

  bool Cuts(const ExampleLengths& raw) const override {
    return IsCutForEos(raw.inputs, settings_.row.inputs);
  }

  void Write(const RawExample& raw, RandomKey /*key*/, const ExampleSlots& slots) const override {
    SYNTRA_CHECK(raw.targets.size() == 1, "{} ids of a class", raw.targets.size());
    CopyWithEos(raw.inputs, settings_.eos, slots.inputs);
    slots.targets.front() = raw.targets.front();
  }

 private:
  ObjectiveSettings settings_;
};

}  // namespace

std::unique_ptr<Objective> objective_classification(const ObjectiveSettings& settings) {
  return std::make_unique<Classification>(settings);
}

}  // namespace syntra
