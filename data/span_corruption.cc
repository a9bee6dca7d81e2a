// SPDX-License-Identifier: Apache-2.0
#include "data/span_corruption.h"

#include <algorithm>

#include "base/error.h"
#include "data/objective.h"
#include "data/random_choice.h"

namespace syntra {
namespace {

// Independent streams of one mask's key.
constexpr uint64_t kNoiseStream = 0, kRestStream = 1;

}  // namespace

std::string WhyTargetsLackRoom(const ExampleLengths& row, const CorruptionLengths& longest) {
  if (longest.targets <= row.targets) return "";
  return fmt::format(
      "data.target_length {} has no room for the {} targets that span corruption makes of "
      "data.input_length {}; leave it out, and it follows from the input length",
      row.targets, longest.targets, row.inputs);
}

std::string WhySentinelsLack(const ExampleLengths& row, const CorruptionLengths& longest,
                             int64_t sentinels) {
  if (longest.spans <= sentinels) return "";
  return fmt::format(
      "data.input_length {} is corrupted in {} spans, but data.extra_ids gives {} sentinels; set "
      "extra_ids to at least {}, or shorten the input",
      row.inputs, longest.spans, sentinels, longest.spans);
}

void SpanCorruption::RandomComposition(int64_t items, int64_t parts, RandomKey key, uint64_t stream,
                                       std::vector<int32_t>* lengths) {
  SYNTRA_CHECK(parts >= 1 && parts <= items, "{} parts of {} items", parts, items);
  // A composition is a choice of parts - 1 of the items - 1 gaps.
  const int64_t gaps = items - 1;
  marks_.assign(gaps, 0);
  ChooseAtRandom(parts - 1, key, stream, marks_);
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

namespace {

class SpanCorruptionObjective : public Objective {
 public:
  explicit SpanCorruptionObjective(const ObjectiveSettings& settings)
      : settings_(settings),
        longest_(
            LengthsFor(settings.row.inputs, settings.noise_density, settings.mean_span_length)) {
    for (const std::string& problem : {WhySentinelsLack(settings.row, longest_, settings.sentinels),
                                       WhyTargetsLackRoom(settings.row, longest_)}) {
      if (!problem.empty()) Fail(ExitCode::kConfig, "{}", problem);
    }
  }

  int64_t segment_tokens() const override { return longest_.tokens; }

  ExampleLengths LengthsOf(const ExampleLengths& raw, RandomKey /*key*/) const override {
    const CorruptionLengths lengths =
        LengthsOfSegment(raw.targets, settings_.noise_density, settings_.mean_span_length);
    return {lengths.inputs, lengths.targets};
  }

  void Write(const RawExample& raw, RandomKey key, const ExampleSlots& slots) const override {
    SpanCorruption corruption(settings_.noise_density, settings_.mean_span_length);
    const std::span<const int32_t> tokens = raw.targets;
    const auto mask = corruption.RandomMask(static_cast<int64_t>(tokens.size()), key);
    const ExampleLengths written{
        WriteCorruptedInputs(tokens, mask, settings_.first_sentinel, settings_.eos, slots.inputs),
        WriteCorruptedTargets(tokens, mask, settings_.first_sentinel, settings_.eos,
                              slots.targets)};
    SYNTRA_CHECK(written == (ExampleLengths{std::ssize(slots.inputs), std::ssize(slots.targets)}));
  }

 private:
  ObjectiveSettings settings_;
  CorruptionLengths longest_;  // of a full segment
};

}  // namespace

std::unique_ptr<Objective> objective_span_corruption(const ObjectiveSettings& settings) {
  return std::make_unique<SpanCorruptionObjective>(settings);
}

}  // namespace syntra
