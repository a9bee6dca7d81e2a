// SPDX-License-Identifier: Apache-2.0
#include "core/corruption_lengths.h"

#include <algorithm>
#include <cmath>

namespace syntra {
namespace {

int64_t RoundHalfToEven(double value) {
  const double floor = std::floor(value);
  const double fraction = value - floor;
  const auto below = static_cast<int64_t>(floor);
  if (fraction != 0.5) return fraction < 0.5 ? below : below + 1;
  return below % 2 == 0 ? below : below + 1;
}

// The lengths by which the segment size is chosen: unclipped, as the T5 code has it.
CorruptionLengths NominalLengths(int64_t tokens, double density, double mean_span) {
  const int64_t noise = RoundHalfToEven(static_cast<double>(tokens) * density);
  const int64_t spans = RoundHalfToEven(static_cast<double>(noise) / mean_span);
  return {tokens, tokens - noise + spans + 1, noise + spans + 1, noise, spans};
}

}  // namespace

CorruptionLengths LengthsOfSegment(int64_t tokens, double density, double mean_span) {
  const int64_t length = std::max<int64_t>(tokens, 2);
  const int64_t noise =
      std::clamp<int64_t>(RoundHalfToEven(static_cast<double>(length) * density), 1, length - 1);
  const int64_t spans =
      std::min({std::max<int64_t>(1, RoundHalfToEven(static_cast<double>(noise) / mean_span)),
                noise, length - noise});
  // A single token is what is left of two after the mask is cut: kept, nothing masked.
  if (tokens < 2) return {tokens, tokens + 1, 2, 0, 0};
  return {tokens, tokens - noise + spans + 1, noise + spans + 1, noise, spans};
}

CorruptionLengths LengthsFor(int64_t input_length, double density, double mean_span) {
  CorruptionLengths lengths = NominalLengths(input_length, density, mean_span);
  // Each step adds at most one input, so the search cannot pass the last fitting length.
  while (true) {
    const CorruptionLengths next = NominalLengths(lengths.tokens + 1, density, mean_span);
    if (next.inputs > input_length) break;
    lengths = next;
  }
  // T5's random_spans_helper: at this density one token less makes the targets as long as the
  // inputs.
  if (density == 0.5 && lengths.targets > lengths.inputs) {
    lengths = NominalLengths(lengths.tokens - 1, density, mean_span);
  }
  // Short spans at a high density lengthen the inputs; then the segment must shrink instead.
  while (lengths.tokens > 2 &&
         LengthsOfSegment(lengths.tokens, density, mean_span).inputs > input_length) {
    lengths = NominalLengths(lengths.tokens - 1, density, mean_span);
  }
  return LengthsOfSegment(lengths.tokens, density, mean_span);
}

}  // namespace syntra
