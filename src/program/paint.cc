#include "program/paint.h"

#include <algorithm>

namespace syntra {
namespace {

// All ones: NaN as f32, bf16 and f64.
constexpr auto kPattern = std::byte{0xFF};

}  // namespace

Painter::Painter(const MemoryPlan& plan, const std::vector<size_t>& used, std::byte* arena)
    : arena_(arena), bytes_(plan.arena_bytes) {
  for (size_t i = 0; i < plan.blocks.size(); ++i) ranges_.push_back({plan.blocks[i], used[i]});
  std::ranges::sort(ranges_, {}, [](const Range& range) { return range.block.offset; });
}

void Painter::BeginStep(size_t step) {
  if (step == 0) std::fill_n(arena_, bytes_, kPattern);
  for (const auto& [block, used] : ranges_) {
    if (block.last + 1 == step) std::fill_n(arena_ + block.offset, block.bytes, kPattern);
  }
}

void Painter::EndStep(size_t step, const Program& program) {
  size_t free = 0;  // everything before it is checked or in use
  const auto check_until = [&](size_t end) {
    const auto intact = [](std::byte b) { return b == kPattern; };
    SYNTRA_CHECK(end <= free || std::all_of(arena_ + free, arena_ + end, intact),
                 "step {}, {}, wrote between {} and {} of the arena, where it owns nothing", step,
                 program.steps[step].op->name, free, end);
  };
  for (const auto& [block, used] : ranges_) {
    if (step < block.first || step > block.last) continue;
    SYNTRA_CHECK(free <= block.offset, "blocks overlap at step {}", step);
    check_until(block.offset);
    free = block.offset + used;
  }
  check_until(bytes_);
}

}  // namespace syntra
