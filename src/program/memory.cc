#include "program/memory.h"

#include <algorithm>

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

bool Overlap(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

void FindPeak(size_t steps, MemoryPlan& plan) {
  std::vector<int64_t> change(steps + 2, 0);
  for (const Block& block : plan.blocks) {
    change[block.first] += static_cast<int64_t>(block.bytes);
    change[block.last + 1] -= static_cast<int64_t>(block.bytes);
  }
  int64_t alive = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    alive += change[i];
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
  std::vector<const Block*> placed;  // by offset
  for (const size_t index : order) {
    Block& block = plan.blocks[index];
    size_t offset = 0;
    for (const Block* other : placed) {
      if (!Overlap(block, *other)) continue;
      if (offset + block.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    block.offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + block.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const Block* a, const Block* b) { return a->offset < b->offset; }),
        &block);
  }
  return plan;
}

}  // namespace syntra
