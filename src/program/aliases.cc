// SPDX-License-Identifier: Apache-2.0
#include "program/aliases.h"

#include <algorithm>

namespace syntra {
namespace {

// The instructions that write a value, in ascending order, and the last that uses it.
struct Uses {
  std::vector<size_t> writes;
  size_t last = 0;

  size_t FirstWriteAfter(size_t instruction) const {
    const auto next = std::ranges::upper_bound(writes, instruction);
    return next == writes.end() ? SIZE_MAX : *next;
  }
};

std::vector<Uses> UsesOf(const Program& program) {
  std::vector<Uses> uses(program.values.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (const Value input : program.instructions[i].inputs) {
      if (input) uses[input.id].last = i;
    }
    for (const Value output : program.instructions[i].outputs) {
      if (!output) continue;
      uses[output.id].writes.push_back(i);
      uses[output.id].last = i;
    }
  }
  for (const auto& [name, value] : program.outputs) {
    if (value) uses[value.id].last = program.instructions.size();
  }
  return uses;
}

}  // namespace

Aliases FindAliases(const Program& program) {
  const std::vector<Uses> uses = UsesOf(program);
  Aliases aliases{{}, std::vector<bool>(program.instructions.size())};
  std::vector<std::vector<int>> sharers(program.values.size());  // of the memory of each value
  for (int v = 0; v < std::ssize(program.values); ++v) {
    aliases.holder.push_back({v});
    sharers[v] = {v};
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (!instruction.op->keeps_elements || instruction.call.accumulate[0]) continue;
    const Value input = instruction.inputs[0], output = instruction.outputs[0];
    if (program.info(input).kind != ValueKind::kTransient) continue;
    if (program.info(output).kind != ValueKind::kTransient) continue;
    std::vector<int>& others = sharers[aliases.holder[input.id].id];
    const Uses& own = uses[output.id];
    aliases.idle[i] = std::ranges::all_of(others, [&](int other) {
      return uses[other].FirstWriteAfter(i) > own.last && own.FirstWriteAfter(i) > uses[other].last;
    });
    if (!aliases.idle[i]) continue;
    others.push_back(output.id);
    aliases.holder[output.id] = aliases.holder[input.id];
  }
  return aliases;
}

}  // namespace syntra
