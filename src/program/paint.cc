// SPDX-License-Identifier: Apache-2.0
#include "program/paint.h"

#include <algorithm>

namespace syntra {
namespace {

// All ones: NaN as f32, bf16 and f64.
constexpr auto kPattern = std::byte{0xFF};

}  // namespace

Painter::Painter(const MemoryPlan& plan, const std::vector<size_t>& used, std::byte* arena)
    : arena_(arena), bytes_(plan.arena_bytes) {
  for (size_t i = 0; i < plan.allocations.size(); ++i)
    ranges_.push_back({plan.allocations[i], used[i]});
  std::ranges::sort(ranges_, {}, [](const Range& range) { return range.allocation.offset; });
}

void Painter::BeginInstruction(size_t instruction) {
  if (instruction == 0) std::fill_n(arena_, bytes_, kPattern);
  for (const auto& [allocation, used] : ranges_) {
    if (allocation.last + 1 == instruction)
      std::fill_n(arena_ + allocation.offset, allocation.bytes, kPattern);
  }
}

void Painter::EndInstruction(size_t instruction, const Program& program) {
  size_t free = 0;  // everything before it is checked or in use
  const auto check_until = [&](size_t end) {
    const auto intact = [](std::byte b) { return b == kPattern; };
    SYNTRA_CHECK(end <= free || std::all_of(arena_ + free, arena_ + end, intact),
                 "instruction {}, {}, wrote between {} and {} of the arena, where it owns nothing",
                 instruction, program.instructions[instruction].op->name, free, end);
  };
  for (const auto& [allocation, used] : ranges_) {
    if (instruction < allocation.first || instruction > allocation.last) continue;
    SYNTRA_CHECK(free <= allocation.offset, "allocations overlap at instruction {}", instruction);
    check_until(allocation.offset);
    free = allocation.offset + used;
  }
  check_until(bytes_);
}

}  // namespace syntra
