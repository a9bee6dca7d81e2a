// SPDX-License-Identifier: Apache-2.0
#include "program/buckets.h"

#include <algorithm>
#include <map>

namespace syntra {
namespace {

// For each gradient, by its offset in the arena: how many instructions must have run until nothing
// writes to it.
std::map<int64_t, size_t> ReadyByOffset(const Program& program) {
  std::map<int64_t, size_t> ready;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (const Value output : program.instructions[i].outputs) {
      if (!output || program.info(output).kind != ValueKind::kGradient) continue;
      ready[program.info(output).offset] = i + 1;
    }
  }
  return ready;
}

// When the range [begin, end) of the arena is ready: with the last gradient that overlaps it.
// The first of them may begin before `begin`.
size_t ReadyIn(const std::map<int64_t, size_t>& ready, int64_t begin, int64_t end) {
  auto first = ready.upper_bound(begin);
  if (first != ready.begin()) --first;
  size_t latest = 0;
  for (auto it = first; it != ready.end() && it->first < end; ++it) {
    latest = std::max(latest, it->second);
  }
  return latest;
}

// The first instruction of the forward half that reads parameters of this range of their arena.
size_t FirstReader(const Program& program, const ElementRange& range) {
  for (size_t i = 0; i < program.backward_begin; ++i) {
    for (const Value input : program.instructions[i].inputs) {
      if (!program.IsParameter(input)) continue;
      const int64_t begin = program.info(input).offset;
      if (range.And({begin, begin + program.info(input).type.shape.size()}).size() > 0) return i;
    }
  }
  return program.backward_begin;
}

}  // namespace

std::vector<GradientBucket> GradientBuckets(const Program& program,
                                            const ParameterStore& parameters,
                                            int64_t bucket_elements) {
  const std::map<int64_t, size_t> ready = ReadyByOffset(program);
  std::vector<ElementRange> ranges = parameters.Buckets(bucket_elements);
  ranges.push_back({parameters.arena_elements(), parameters.gradient_elements()});
  std::vector<GradientBucket> buckets;
  for (const auto& [begin, end] : ranges) {
    buckets.push_back({begin, end, ReadyIn(ready, begin, end)});
  }
  std::ranges::stable_sort(buckets, {}, &GradientBucket::ready);
  return buckets;
}

std::vector<size_t> BucketsNeeded(const Program& program, std::span<const ElementRange> buckets) {
  std::vector<size_t> needed;
  for (const ElementRange& bucket : buckets) needed.push_back(FirstReader(program, bucket));
  for (size_t i = needed.size(); i-- > 1;) needed[i - 1] = std::min(needed[i - 1], needed[i]);
  return needed;
}

}  // namespace syntra
