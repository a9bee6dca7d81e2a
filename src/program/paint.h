// Paints the transient arena of a program under test: bytes that no live value occupies hold a
// pattern that reads as NaN, before every step. A step that reads a dead value computes NaN; one
// that writes beside its operands is named.
#pragma once

#include "program/memory.h"

namespace syntra {

class Painter {
 public:
  // used[i]: bytes of plan.blocks[i] that its owner may write; the rest of the block is a guard.
  Painter(const MemoryPlan& plan, const std::vector<size_t>& used, std::byte* arena);

  // Paints what died before `step`; before step 0, everything.
  void BeginStep(size_t step);
  // Throws Error(kInternal) unless `step` wrote nothing but its operands.
  void EndStep(size_t step, const Program& program);

 private:
  struct Range {
    Block block;
    size_t used;
  };
  std::vector<Range> ranges_;  // by offset
  std::byte* arena_;
  size_t bytes_;
};

}  // namespace syntra
