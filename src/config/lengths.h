// Lengths that follow from the span-corruption settings.
#pragma once

#include "configs/schema/config.pb.h"

namespace syntra {

struct CorruptionLengths {
  int tokens;   // uncorrupted tokens of one example
  int inputs;   // corrupted input, sentinels and EOS included; at most data.input_length
  int targets;  // target, sentinels and EOS included
  int spans;    // corrupted spans, one sentinel each
};

// The largest number of tokens whose corrupted input fits in data.input_length, as T5 chooses it:
// of T tokens round(T density) are noise in round(noise / mean_span_length) spans; halves round to
// even. 512 inputs at the default settings: 568 tokens, 114 targets, 28 spans.
CorruptionLengths LengthsOf(const DataConfig& data);

}  // namespace syntra
