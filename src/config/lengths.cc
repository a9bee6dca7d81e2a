#include "config/lengths.h"

#include <cmath>

namespace syntra {
namespace {

CorruptionLengths LengthsOfTokens(int tokens, const DataConfig& data) {
  const int noise = static_cast<int>(std::nearbyint(tokens * data.noise_density()));
  const int spans = static_cast<int>(std::nearbyint(noise / data.mean_span_length()));
  return {tokens, tokens - noise + spans + 1, noise + spans + 1, spans};
}

}  // namespace

CorruptionLengths LengthsOf(const DataConfig& data) {
  CorruptionLengths lengths = LengthsOfTokens(1, data);
  // More noise than 0.9 is refused and spans add to the inputs, so ten tokens for one input is the
  // most.
  const int64_t most = int64_t{10} * data.input_length() + 20;
  for (int tokens = 2; tokens <= most; ++tokens) {
    const CorruptionLengths longer = LengthsOfTokens(tokens, data);
    if (longer.inputs > data.input_length()) break;
    lengths = longer;
  }
  return lengths;
}

}  // namespace syntra
