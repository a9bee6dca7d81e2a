// SPDX-License-Identifier: Apache-2.0
// The kernels of a program's instructions on a backend.
#pragma once

#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "program/aliases.h"

namespace syntra {

// The kernels of an instruction: `add` adds to the gradients that it writes; `replace`, if it is
// the first of its program to write them, overwrites what the arena held.
struct InstructionKernels {
  BoundKernel add;
  std::optional<BoundKernel> replace;
  // How many instructions, from this one on, `add` executes; 0 if an earlier one's kernel does this
  // one.
  size_t instructions = 1;

  size_t workspace_bytes() const {
    return std::max(add.workspace_bytes, replace ? replace->workspace_bytes : 0);
  }
};

bool IsParameter(const Program& program, Value value);

// In which forms kernels find the parameters besides their f32 values (Arenas).
struct ParameterForms {
  bool rounded = false;
  PackedWeights* packed = nullptr;
};

// The call as the backend binds it, with values in these places. With bf16 copies of the
// parameters, kernels that would round parameters read the copies, and the update of a parameter
// has its copy as one more output.
OpCall StoredCall(const Program& program, const Instruction& instruction,
                  const std::vector<Place>& places, Backend& backend, const ParameterForms& forms);

// The kernels of all instructions. Throws Error(kResources) naming the ops that have none.
std::vector<InstructionKernels> BindInstructions(const Program& program, Backend& backend,
                                                 const ParameterForms& forms);

std::vector<size_t> WorkspacesOf(const std::vector<InstructionKernels>& kernels);

}  // namespace syntra
