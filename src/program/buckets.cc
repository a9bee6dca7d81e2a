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

// The same for the range [begin, end) of the arena: the latest of the gradients that overlap it.
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

// The first instruction of the forward half that reads elements of this range of the arena of
// parameters.
size_t FirstReader(const Program& program, const ElementRange& range) {
  const auto reads = [&](const Instruction& instruction) {
    return std::ranges::any_of(instruction.inputs, [&](Value input) {
      if (!input || program.info(input).kind != ValueKind::kParameter) return false;
      const int64_t begin = program.info(input).offset;
      return range.And({begin, begin + program.info(input).type.shape.size()}).size() > 0;
    });
  };
  const auto begin = program.instructions.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(program.backward_begin);
  return std::find_if(begin, end, reads) - begin;
}

}  // namespace

std::vector<GradientBucket> GradientBuckets(const Program& program,
                                            const ParameterStore& parameters,
                                            int64_t bucket_elements) {
  const std::map<int64_t, size_t> ready = ReadyByOffset(program);
  std::vector<ElementRange> pieces = parameters.Pieces(bucket_elements);
  pieces.push_back({parameters.arena_elements(), parameters.gradient_elements()});
  std::vector<GradientBucket> buckets;
  for (const auto& [begin, end] : pieces) {
    buckets.push_back({begin, end, ReadyIn(ready, begin, end)});
  }
  std::ranges::stable_sort(buckets, {}, &GradientBucket::ready);
  return buckets;
}

std::vector<size_t> PiecesNeeded(const Program& program, std::span<const ElementRange> pieces) {
  std::vector<size_t> needed(pieces.size());
  size_t first = program.backward_begin;
  for (size_t i = pieces.size(); i-- > 0;) {
    needed[i] = first = std::min(first, FirstReader(program, pieces[i]));
  }
  return needed;
}

}  // namespace syntra
