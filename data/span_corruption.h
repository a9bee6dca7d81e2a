// SPDX-License-Identifier: Apache-2.0
// Span corruption, T5's pretraining objective (Raffel et al. 2020, section 3.1.4), as the code of
// c4_v220_span_corruption does it: spans of a segment are replaced by sentinels in the inputs, and
// the targets are those spans, each led by its sentinel. There is no closing sentinel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/corruption_lengths.h"
#include "core/random.h"
#include "data/example.h"

namespace syntra {

// Why rows with these slots have no room for the targets of the longest segment that their inputs
// hold; "" if they have.
std::string WhyTargetsLackRoom(const ExampleLengths& row, const CorruptionLengths& longest);
// Why `sentinels` sentinels do not suffice for that segment; "" if they do.
std::string WhySentinelsLack(const ExampleLengths& row, const CorruptionLengths& longest,
                             int64_t sentinels);

// Draws masks and applies them. Buffers are kept between calls, so one object serves one thread.
class SpanCorruption {
 public:
  SpanCorruption(double density, double mean_span) : density_(density), mean_span_(mean_span) {}

  // mask[i] != 0 where token i is noise; valid until the next call. Spans of noise and of the rest
  // alternate, starting with the rest; every way to cut each of the two into its spans is equally
  // likely. A mask of density 0 is all zero.
  std::span<const uint8_t> RandomMask(int64_t length, RandomKey key);

 private:
  // Uniform over the compositions of `items` into `parts` positive parts.
  void RandomComposition(int64_t items, int64_t parts, RandomKey key, uint64_t stream,
                         std::vector<int32_t>* lengths);

  double density_, mean_span_;
  std::vector<uint8_t> mask_, marks_;
  std::vector<int32_t> noise_lengths_, rest_lengths_;
};

// Each run of tokens with mask == `masked` becomes one sentinel, counting down from
// `first_sentinel`; the other tokens are copied. Writes to `out`, which must have room, and returns
// how many ids it wrote: never more than tokens.size(), and as core/corruption_lengths.h counts
// them.
int64_t ReplaceSpansBySentinels(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                                bool masked, int32_t first_sentinel, std::span<int32_t> out);

// The inputs of an example: noise spans replaced, EOS appended.
int64_t WriteCorruptedInputs(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                             int32_t first_sentinel, int32_t eos, std::span<int32_t> out);

// The targets: all but the noise spans replaced, EOS appended.
int64_t WriteCorruptedTargets(std::span<const int32_t> tokens, std::span<const uint8_t> mask,
                              int32_t first_sentinel, int32_t eos, std::span<int32_t> out);

}  // namespace syntra
