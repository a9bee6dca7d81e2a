#include "program/memory.h"

#include <algorithm>

#include "base/checked.h"
#include "core/buffer.h"

namespace syntra {
namespace {

std::vector<Block> Lifetimes(const Program& program, const Backend& backend) {
  std::vector<Block> blocks;
  std::vector<int> block_of(program.values.size(), -1);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const auto touch = [&](Value value) {
      if (!value || program.info(value).kind != ValueKind::kTransient) return;
      if (block_of[value.id] < 0) {
        block_of[value.id] = static_cast<int>(blocks.size());
        blocks.push_back({value, AlignUp(backend.Held(program.info(value).type).bytes()), i, i, 0});
      }
      blocks[block_of[value.id]].last = i;
    };
    for (const Value input : program.steps[i].inputs) touch(input);
    for (const Value output : program.steps[i].outputs) touch(output);
  }
  for (const auto& [name, value] : program.outputs) {
    if (value && block_of[value.id] >= 0) blocks[block_of[value.id]].last = program.steps.size();
  }
  return blocks;
}

// What the search for a place reads of a block, side by side: deep models have 10^5 blocks.
struct Placed {
  size_t offset, end;
  size_t first, last;
};

size_t SumOfBytes(size_t a, size_t b) {
  return static_cast<size_t>(
      CheckedAdd(static_cast<int64_t>(a), static_cast<int64_t>(b), "bytes of activations"));
}

void FindPeak(size_t steps, MemoryPlan& plan) {
  std::vector<int64_t> change(steps + 2, 0);
  for (const Block& block : plan.blocks) {
    change[block.first] += static_cast<int64_t>(block.bytes);
    change[block.last + 1] -= static_cast<int64_t>(block.bytes);
  }
  int64_t alive = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    alive = CheckedAdd(alive, change[i], "bytes of activations");
    if (alive > static_cast<int64_t>(plan.peak_bytes)) {
      plan.peak_bytes = alive;
      plan.peak_step = i;
    }
  }
}

}  // namespace

MemoryPlan PlanMemory(const Program& program, const std::vector<size_t>& workspace,
                      const Backend& backend, size_t guard_bytes) {
  MemoryPlan plan;
  plan.blocks = Lifetimes(program, backend);
  for (size_t i = 0; i < workspace.size(); ++i) {
    if (workspace[i] > 0) plan.blocks.push_back({{}, AlignUp(workspace[i]), i, i, 0});
  }
  for (Block& block : plan.blocks) block.bytes += AlignUp(guard_bytes);
  FindPeak(program.steps.size(), plan);

  std::vector<size_t> order(plan.blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return plan.blocks[a].bytes > plan.blocks[b].bytes; });
  std::vector<Placed> placed;  // by offset
  for (const size_t index : order) {
    Block& block = plan.blocks[index];
    size_t offset = 0;
    for (const Placed& other : placed) {
      if (block.last < other.first || other.last < block.first) continue;
      if (offset + block.bytes <= other.offset) break;
      offset = std::max(offset, other.end);
    }
    block.offset = offset;
    const size_t end = SumOfBytes(offset, block.bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, end);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset),
                  {offset, end, block.first, block.last});
  }
  return plan;
}

}  // namespace syntra
