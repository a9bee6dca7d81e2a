// SPDX-License-Identifier: Apache-2.0
// Where transient values lie: one arena, each value at an offset that no other value alive at the
// same time overlaps. Greedy by size over exact lifetimes (Pisarchyk and Lee 2020).
#pragma once

#include "kernels/backend.h"
#include "program/aliases.h"

namespace syntra {

struct Allocation {
  Value value;  // the value, with those that it holds; absent: workspace of `first`
  size_t bytes = 0;
  size_t first = 0;  // instruction that writes it first
  size_t last = 0;   // instruction that reads it last
  size_t offset = 0;
};

struct MemoryPlan {
  std::vector<Place> places;  // of each value
  // Transients, then one workspace per instruction that wants one.
  std::vector<Allocation> allocations;
  size_t arena_bytes = 0;
  // Largest sum of what is alive at one instruction: the bound that no plan can beat.
  size_t peak_bytes = 0;
  size_t peak_instruction = 0;
};

// workspace[i]: bytes of scratch that instruction i wants. Values have the sizes with which the
// backend stores them. Each allocation ends with `guard_bytes` that its owner does not use.
MemoryPlan PlanMemory(const Program& program, const std::vector<size_t>& workspace,
                      const Backend& backend, size_t guard_bytes = 0);

}  // namespace syntra
