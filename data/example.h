// SPDX-License-Identifier: Apache-2.0
// Examples: the ids that a model reads, its inputs, and the ids that it must predict, its targets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace syntra {

class DataConfig;

// In tokens, the EOS included.
struct ExampleLengths {
  int64_t inputs = 0, targets = 0;

  bool operator==(const ExampleLengths&) const = default;
  bool FitIn(const ExampleLengths& room) const {
    return inputs <= room.inputs && targets <= room.targets;
  }
};

inline ExampleLengths operator+(const ExampleLengths& a, const ExampleLengths& b) {
  return {a.inputs + b.inputs, a.targets + b.targets};
}

// The larger inputs and the larger targets.
inline ExampleLengths Longest(const ExampleLengths& a, const ExampleLengths& b) {
  return {std::max(a.inputs, b.inputs), std::max(a.targets, b.targets)};
}

// Whether the model learns tasks: it then learns from no corpora, whatever data.train names.
bool HasTasks(const DataConfig& config);

// Whether the objective is language modelling (CAUSAL_LM, PREFIX_LM). Inputs then have no EOS, and
// the targets continue them.
bool IsLanguageModelling(const DataConfig& config);

// The longest inputs and targets under a configuration: data.input_length and data.target_length;
// where the latter is 0, what span corruption makes of the former. Language models cut text into
// rows of data.input_length tokens. With CAUSAL_LM and PREFIX_LM these are all targets, and inputs
// among them take the place of targets; with MASKED_LM each is an input and a target.
ExampleLengths RowLengths(const DataConfig& config);

// The place to which an example is written.
struct ExampleSlots {
  std::span<int32_t> inputs, targets;
};

// Ids as the data has them, without EOS. Plain text has targets alone, as in T5's code: what the
// model is given of it is the objective's choice.
struct RawExample {
  std::span<const int32_t> inputs, targets;
};

}  // namespace syntra
