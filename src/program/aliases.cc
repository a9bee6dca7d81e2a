// SPDX-License-Identifier: Apache-2.0
#include "program/aliases.h"

#include <algorithm>

namespace syntra {
namespace {

// An operand of an instruction.
struct Touch {
  size_t instruction, operand;
  bool writes;
};

// The instructions that touch a value, in the order of the program.
struct Uses {
  std::vector<Touch> touches;
  size_t last = 0;  // the last instruction that uses it
  bool is_output = false;

  size_t FirstWriteAfter(size_t instruction) const {
    const auto next = std::ranges::find_if(
        touches, [&](const Touch& t) { return t.writes && t.instruction > instruction; });
    return next == touches.end() ? SIZE_MAX : next->instruction;
  }
};

std::vector<Uses> UsesOf(const Program& program) {
  std::vector<Uses> uses(program.values.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto touch = [&](const std::vector<Value>& operands, bool writes) {
      for (size_t k = 0; k < operands.size(); ++k) {
        if (!operands[k]) continue;
        uses[operands[k].id].touches.push_back({i, k, writes});
        uses[operands[k].id].last = i;
      }
    };
    touch(program.instructions[i].inputs, false);
    touch(program.instructions[i].outputs, true);
  }
  for (const auto& [name, value] : program.outputs) {
    uses[value.id].last = program.instructions.size();
    uses[value.id].is_output = true;
  }
  return uses;
}

bool IsTransient(const Program& program, Value value) {
  return program.info(value).kind == ValueKind::kTransient;
}

// Whether an instruction's output may lie where its input does, as far as their types tell.
bool CanShare(const Program& program, const Op& op, Value input, Value output) {
  if (!input || !IsTransient(program, input) || !IsTransient(program, output)) return false;
  const TensorType &x = program.info(input).type, &y = program.info(output).type;
  return op.keeps_elements ? x.dtype == y.dtype : x == y;
}

// Places what instruction i would have side by side so, if everything else can deal with that.
void PlaceSideBySide(const Program& program, const std::vector<Uses>& uses, size_t i,
                     std::vector<Place>& places) {
  const Instruction& instruction = program.instructions[i];
  const OperandRange range = instruction.op->side_by_side(instruction.call);
  const std::vector<Value>& all = range.of_outputs ? instruction.outputs : instruction.inputs;
  const std::span members(all.begin() + static_cast<ptrdiff_t>(range.first), range.count);
  const auto rows = [&](Value member) { return program.info(member).type.shape.rows(); };
  const auto fits = [&](Value member) {
    if (!member || !IsTransient(program, member) || places[member.id].pitch > 0) return false;
    const Uses& own = uses[member.id];
    // Columns at multiples of eight elements begin at multiples of 16 bytes.
    return !own.is_output && std::ranges::count(all, member) == 1 &&
           program.info(member).type.shape[-1] % 8 == 0 && rows(member) == rows(members[0]) &&
           std::ranges::all_of(own.touches, [&](const Touch& touch) {
             return touch.instruction == i || program.instructions[touch.instruction].TakesColumns(
                                                  touch.operand, touch.writes);
           });
  };
  if (members.size() < 2 || !std::ranges::all_of(members, fits)) return;
  int64_t columns = 0;
  for (const Value member : members) {
    places[member.id] = {members[0], columns, 0};
    columns += program.info(member).type.shape[-1];
  }
  for (const Value member : members) places[member.id].pitch = columns;
}

}  // namespace

TensorType Place::MemoryOf(const TensorType& type) const {
  if (pitch == 0) return type;
  return {type.dtype, {type.shape.rows(), pitch}};
}

Aliases FindAliases(const Program& program) {
  const std::vector<Uses> uses = UsesOf(program);
  Aliases aliases{{}, std::vector<bool>(program.instructions.size())};
  std::vector<std::vector<int>> sharers(program.values.size());  // of the memory of each value
  for (int v = 0; v < std::ssize(program.values); ++v) {
    aliases.places.push_back({{v}});
    sharers[v] = {v};
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.op->side_by_side) PlaceSideBySide(program, uses, i, aliases.places);
    const bool keeps = instruction.op->keeps_elements;
    if ((!keeps && !instruction.op->elementwise) || instruction.call.accumulate[0]) continue;
    const Value output = instruction.outputs[0];
    const Uses& own = uses[output.id];
    // Whether it may lie where this value does.
    const auto allows = [&](int other) {
      const Uses& its = uses[other];
      if (!keeps) return its.last <= i && own.touches[0].instruction == i;
      return its.FirstWriteAfter(i) > own.last && own.FirstWriteAfter(i) > its.last;
    };
    for (const Value input : instruction.inputs) {
      if (!CanShare(program, *instruction.op, input, output)) continue;
      const Place& place = aliases.places[input.id];
      std::vector<int>& others = sharers[place.holder.id];
      if (place.pitch > 0 || !std::ranges::all_of(others, allows)) continue;
      others.push_back(output.id);
      aliases.places[output.id] = place;
      aliases.idle[i] = keeps;
      break;
    }
  }
  return aliases;
}

}  // namespace syntra
