// SPDX-License-Identifier: Apache-2.0
#include "program/memory.h"

#include <algorithm>

#include "base/checked.h"
#include "core/buffer.h"
#include "program/occupancy.h"

namespace syntra {
namespace {

std::vector<Allocation> Lifetimes(const Program& program, const std::vector<Place>& places,
                                  const Backend& backend) {
  std::vector<Allocation> allocations;
  std::vector<int> allocation_of(program.values.size(), -1);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto touch = [&](Value value) {
      if (!value || program.info(value).kind != ValueKind::kTransient) return;
      const Place& place = places[value.id];
      value = place.holder;
      if (allocation_of[value.id] < 0) {
        allocation_of[value.id] = static_cast<int>(allocations.size());
        const TensorType memory = place.MemoryOf(backend.Stored(program.info(value).type));
        allocations.push_back({value, AlignUp(memory.bytes()), i, i, 0});
      }
      allocations[allocation_of[value.id]].last = i;
    };
    for (const Value input : program.instructions[i].inputs) touch(input);
    for (const Value output : program.instructions[i].outputs) touch(output);
  }
  for (const auto& [name, value] : program.outputs) {
    if (program.info(value).kind != ValueKind::kTransient) continue;
    allocations[allocation_of[places[value.id].holder.id]].last = program.instructions.size();
  }
  return allocations;
}

size_t SumOfBytes(size_t a, size_t b) {
  return static_cast<size_t>(
      CheckedAdd(static_cast<int64_t>(a), static_cast<int64_t>(b), "bytes of activations"));
}

void FindPeak(size_t instructions, MemoryPlan& plan) {
  std::vector<int64_t> change(instructions + 2, 0);
  for (const Allocation& allocation : plan.allocations) {
    change[allocation.first] += static_cast<int64_t>(allocation.bytes);
    change[allocation.last + 1] -= static_cast<int64_t>(allocation.bytes);
  }
  int64_t alive = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    alive = CheckedAdd(alive, change[i], "bytes of activations");
    if (alive > static_cast<int64_t>(plan.peak_bytes)) {
      plan.peak_bytes = alive;
      plan.peak_instruction = i;
    }
  }
}

}  // namespace

MemoryPlan PlanMemory(const Program& program, const std::vector<size_t>& workspace,
                      const Backend& backend, size_t guard_bytes) {
  MemoryPlan plan;
  plan.places = FindAliases(program).places;
  plan.allocations = Lifetimes(program, plan.places, backend);
  for (size_t i = 0; i < workspace.size(); ++i) {
    if (workspace[i] > 0) plan.allocations.push_back({{}, AlignUp(workspace[i]), i, i, 0});
  }
  for (Allocation& allocation : plan.allocations) allocation.bytes += AlignUp(guard_bytes);
  FindPeak(program.instructions.size(), plan);

  std::vector<size_t> order(plan.allocations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return plan.allocations[a].bytes > plan.allocations[b].bytes;
  });
  Occupancy taken(program.instructions.size() + 1);  // outputs live beyond the last one
  for (const size_t index : order) {
    Allocation& allocation = plan.allocations[index];
    const auto& [value, bytes, first, last, unplaced] = allocation;
    allocation.offset = taken.LowestFree(first, last, bytes);
    const size_t end = SumOfBytes(allocation.offset, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, end);
    taken.Take(first, last, allocation.offset, end);
  }
  return plan;
}

}  // namespace syntra
