#include "data/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace syntra {
namespace {

// Independent streams of one mask's key.
constexpr uint64_t kNoiseStream = 0, kRestStream = 1;

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
  // Short spans at a high density lengthen the inputs; then the segment must shrink instead.
  while (lengths.tokens > 2 &&
         LengthsOfSegment(lengths.tokens, density, mean_span).inputs > input_length) {
    lengths = NominalLengths(lengths.tokens - 1, density, mean_span);
  }
  return LengthsOfSegment(lengths.tokens, density, mean_span);
}

void SpanCorruption::RandomComposition(int64_t items, int64_t parts, RandomKey key, uint64_t stream,
                                       std::vector<int32_t>* lengths) {
  SYNTRA_CHECK(parts >= 1 && parts <= items, "{} parts of {} items", parts, items);
  // A composition is a choice of parts - 1 of the items - 1 gaps (Floyd's algorithm).
  const int64_t gaps = items - 1, cuts = parts - 1;
  marks_.assign(gaps, 0);
  RandomBits bits{};
  for (int64_t i = 0; i < cuts; ++i) {
    if (i % 4 == 0) bits = RandomAt(key, i / 4, stream);
    const int64_t last = gaps - cuts + i;
    const int64_t drawn = UniformBelow(bits[i % 4], static_cast<uint32_t>(last + 1));
    marks_[marks_[drawn] ? last : drawn] = 1;
  }
  lengths->clear();
  int32_t length = 1;
  for (int64_t gap = 0; gap < gaps; ++gap, ++length) {
    if (marks_[gap] == 0) continue;
    lengths->push_back(length);
    length = 0;
  }
  lengths->push_back(length);
}

std::span<const uint8_t> SpanCorruption::RandomMask(int64_t length, RandomKey key) {
  mask_.assign(length, 0);
  if (density_ <= 0 || length < 2) return mask_;
  const CorruptionLengths counts = LengthsOfSegment(length, density_, mean_span_);
  RandomComposition(counts.noise, counts.spans, key, kNoiseStream, &noise_lengths_);
  RandomComposition(length - counts.noise, counts.spans, key, kRestStream, &rest_lengths_);
  int64_t position = 0;
  for (int64_t span = 0; span < counts.spans; ++span) {
    position += rest_lengths_[span];
    std::fill_n(mask_.begin() + position, noise_lengths_[span], uint8_t{1});
    position += noise_lengths_[span];
  }
  return mask_;
}

int64_t ReplaceSpansBySentinels(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                                bool masked, int32_t first_sentinel, std::span<int32_t> out) {
  int64_t count = 0;
  int32_t sentinel = first_sentinel;
  bool inside = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool replaced = (mask[i] != 0) == masked;
    if (!replaced) {
      out[count++] = tokens[i];
    } else if (!inside) {
      out[count++] = sentinel--;
    }
    inside = replaced;
  }
  return count;
}

int64_t WriteCorruptedInputs(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                             int32_t first_sentinel, int32_t eos, std::span<int32_t> out) {
  const int64_t count = ReplaceSpansBySentinels(tokens, mask, true, first_sentinel, out);
  out[count] = eos;
  return count + 1;
}

int64_t WriteCorruptedTargets(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                              int32_t first_sentinel, int32_t eos, std::span<int32_t> out) {
  const int64_t count = ReplaceSpansBySentinels(tokens, mask, false, first_sentinel, out);
  out[count] = eos;
  return count + 1;
}

}  // namespace syntra
