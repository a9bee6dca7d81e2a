// SPDX-License-Identifier: Apache-2.0
// What an example is: token ids for the encoder, and the ids that the decoder is to give.
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

// Lengths of a row under a configuration: data.input_length and data.target_length; where the
// latter is 0, what span corruption makes of the former.
ExampleLengths RowLengths(const DataConfig& config);

// Where an example is to be written.
struct ExampleSlots {
  std::span<int32_t> inputs, targets;
};

// Ids as the data has them, without EOS. Plain text has targets alone, as in T5's code: what the
// encoder is given of it is the objective's choice.
struct RawExample {
  std::span<const int32_t> inputs, targets;
};

}  // namespace syntra
