// SPDX-License-Identifier: Apache-2.0
// Paints the transient arena of a program under test: bytes that no live value occupies hold a
// pattern that reads as NaN, before every instruction. An instruction that reads a dead value
// computes NaN; one that writes outside its operands gives an error that names it.
#pragma once

#include "program/memory.h"

namespace syntra {

class Painter {
 public:
  // used[i]: bytes of plan.allocations[i] that its owner may write; the rest of the allocation is a
  // guard.
  Painter(const MemoryPlan& plan, const std::vector<size_t>& used, std::byte* arena);

  // Paints what died before `instruction`; before instruction 0, everything.
  void BeginInstruction(size_t instruction);
  // Throws Error(kInternal) unless `instruction` wrote nothing but its operands.
  void EndInstruction(size_t instruction, const Program& program);

 private:
  struct Range {
    Allocation allocation;
    size_t used;
  };
  std::vector<Range> ranges_;  // by offset
  std::byte* arena_;
  size_t bytes_;
};

}  // namespace syntra
