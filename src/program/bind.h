// SPDX-License-Identifier: Apache-2.0
// The kernels of a program's instructions on a backend.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "kernels/backend.h"
#include "program/aliases.h"

namespace syntra {

// The bf16 copies of parameters that an instruction's kernels use.
struct UsedCopies {
  std::set<size_t> read;  // the inputs, all parameters, in whose place kernels read the copies
  bool written = false;   // whether the copy of output 0 is one more output
};

// The kernels of an instruction: `add` adds to the gradients that it writes; `replace`, if it is
// the first of its program to write them, overwrites what the arena held.
struct InstructionKernels {
  BoundKernel add;
  std::optional<BoundKernel> replace;
  // How many instructions, from this one on, `add` executes; 0 if an earlier one's kernel does this
  // one.
  size_t instructions = 1;
  UsedCopies copies;

  size_t workspace_bytes() const {
    return std::max(add.workspace_bytes, replace ? replace->workspace_bytes : 0);
  }
};

// In which forms kernels find the parameters besides their f32 values (Arenas). With bf16 copies,
// kernels that would round parameters read the copies, and updates of parameters write them.
struct ParameterForms {
  bool rounded = false;
  PackedWeights* packed = nullptr;
};

// The kernels of all instructions. Throws Error(kResources) naming the ops that have none.
std::vector<InstructionKernels> BindInstructions(const Program& program, Backend& backend,
                                                 const ParameterForms& forms);

// The bytes of workspace that each instruction's kernels need.
std::vector<size_t> WorkspacesOf(const std::vector<InstructionKernels>& kernels);

}  // namespace syntra
