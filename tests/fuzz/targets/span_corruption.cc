// SPDX-License-Identifier: Apache-2.0
// Span corruption: inputs and targets together are the text, their lengths the ones promised.
#include "data/span_corruption.h"

#include <cstring>

#include "fuzz/target.h"

namespace syntra {
namespace {

constexpr int32_t kEos = 1, kFirstSentinel = 100000;  // above every token

bool IsSentinel(int32_t id) { return id > 70000; }

// The text again: each span of the targets in the place of its sentinel in the inputs.
std::vector<int32_t> Joined(std::span<const int32_t> inputs, std::span<const int32_t> targets) {
  std::vector<int32_t> text;
  auto from = targets.begin();
  for (const int32_t id : inputs) {
    if (!IsSentinel(id)) {
      text.push_back(id);
      continue;
    }
    while (from != targets.end() && *from != id) ++from;
    SYNTRA_CHECK(from != targets.end(), "sentinel {} is not in the targets", id);
    for (++from; from != targets.end() && !IsSentinel(*from); ++from) text.push_back(*from);
  }
  return text;
}

// The first 12 bytes are settings, the rest tokens of two bytes.
struct Case {
  double density = 0, mean_span = 1;
  RandomKey key;
  std::vector<int32_t> tokens;
};

Case CaseOf(std::string_view input) {
  uint32_t numbers[3] = {};
  std::memcpy(numbers, input.data(), std::min(input.size(), sizeof numbers));
  Case one{.density = (numbers[0] & 0xffff) / 65536.0,
           .mean_span = 1 + (numbers[0] >> 16) / 4096.0,
           .key = {numbers[1], numbers[2]}};
  for (size_t at = sizeof numbers; at + 2 <= input.size(); at += 2) {
    uint16_t token;
    std::memcpy(&token, input.data() + at, sizeof token);
    one.tokens.push_back(2 + token);  // neither padding nor EOS
  }
  return one;
}

void Run(std::string_view input) {
  const Case one = CaseOf(input);
  const auto length = static_cast<int64_t>(one.tokens.size());
  SpanCorruption corruption(one.density, one.mean_span);
  const auto mask = corruption.RandomMask(length, one.key);
  SYNTRA_CHECK(mask.size() == one.tokens.size());
  std::vector<int32_t> inputs(length + 1), targets(length + 2);
  inputs.resize(WriteCorruptedInputs(one.tokens, mask, kFirstSentinel, kEos, inputs));
  targets.resize(WriteCorruptedTargets(one.tokens, mask, kFirstSentinel, kEos, targets));
  SYNTRA_CHECK(inputs.back() == kEos && targets.back() == kEos);
  inputs.pop_back();
  targets.pop_back();
  const bool masks = one.density > 0 && length > 1;
  // Targets begin with the first sentinel's text only where something is masked.
  const std::vector<int32_t> text = masks ? Joined(inputs, targets) : inputs;
  SYNTRA_CHECK(text == one.tokens, "{} tokens became {}", length, text.size());
  if (!masks) return;
  const CorruptionLengths lengths = LengthsOfSegment(length, one.density, one.mean_span);
  SYNTRA_CHECK(lengths.inputs == static_cast<int64_t>(inputs.size()) + 1 &&
               lengths.targets == static_cast<int64_t>(targets.size()) + 1);
}

std::vector<std::string> Seeds() {
  const std::string settings("\x66\x26\x00\x20key  key", 12);  // 15 %, spans of 3
  return {settings + std::string(200, 'a'), settings + "abcd", settings, ""};
}

}  // namespace

const Target fuzz_span_corruption = {
    .name = "span_corruption", .refusals = {}, .run = Run, .seeds = Seeds, .mutations = 5000};

}  // namespace syntra
