// SPDX-License-Identifier: Apache-2.0
// Lengths that follow from the settings of span corruption (Raffel et al. 2020, section 3.1.4).
#pragma once

#include <cstdint>

namespace syntra {

// Counts for a segment of `tokens` tokens. `inputs` and `targets` include the EOS.
struct CorruptionLengths {
  int64_t tokens = 0;
  int64_t inputs = 0;
  int64_t targets = 0;
  int64_t noise = 0;  // masked tokens
  int64_t spans = 0;
};

// A segment of exactly `tokens` >= 1 tokens:
//   noise = clip(round(density n), 1, n - 1), spans = max(1, round(noise / mean_span)), n =
//   max(tokens, 2),
// rounding halves to even, and never more spans than there are tokens to keep them apart.
CorruptionLengths LengthsOfSegment(int64_t tokens, double density, double mean_span);

// The longest segment whose corrupted inputs fit `input_length`: 512 gives 568 tokens, 114 targets.
CorruptionLengths LengthsFor(int64_t input_length, double density, double mean_span);

}  // namespace syntra
