// SPDX-License-Identifier: Apache-2.0
// A training objective: how the ids of the data become the inputs and targets of an example. Each
// has a file of its own and a line in objectives.def (README.md, "Adding an objective").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/random.h"
#include "data/example.h"
#include "data/tokenizer.h"

namespace syntra {

// The settings that decide examples, besides the data.
struct ObjectiveSettings {
  ExampleLengths row;  // no example may be longer (RowLengths)
  double noise_density = 0.15, mean_span_length = 3;
  int32_t first_sentinel = 0, sentinels = 0;
  int32_t eos = 1;

  // Throws Error(kData) if the tokenizer has no EOS.
  static ObjectiveSettings From(const DataConfig& config, const Tokenizer& tokenizer);
};

// Const members may be called from several threads.
class Objective {
 public:
  virtual ~Objective() = default;

  // Tokens of the segments into which text is to be cut. 0: the objective takes pairs of inputs and
  // targets, not text, and its examples do not depend on the key.
  virtual int64_t segment_tokens() const = 0;
  // Whether an EOS follows each document of the text before it is cut.
  virtual bool marks_documents() const { return false; }
  // The lengths of the example that Write makes of `raw` ids; within ObjectiveSettings::row.
  virtual ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey key) const = 0;
  // Whether some ids of such a raw example are left out because there is no room for them.
  virtual bool Cuts(const ExampleLengths& /*raw*/) const { return false; }
  // Fills `slots`, which have LengthsOf(raw, key). A function of the ids and the key alone. A
  // target may be kIgnoredTarget.
  virtual void Write(const RawExample& raw, RandomKey key, const ExampleSlots& slots) const = 0;
};

// Throws Error(kConfig) if there is no objective of that name or if it cannot work with the
// settings, and says how it could.
std::unique_ptr<Objective> MakeObjective(std::string_view name, const ObjectiveSettings& settings);
// The name of the objective of a configuration's corpora: "span_corruption".
std::string ObjectiveOfCorpus(const DataConfig& config);

}  // namespace syntra
