// SPDX-License-Identifier: Apache-2.0
// Joins calls that multiply the same value with different parameters (Op::joint): a layer's
// queries, keys and values, and the keys and values that it computes from the encoder's output. If
// joined across regions, the latter are those of all decoder layers. One large product runs faster
// than several small ones and reads the value once, and its gradient is one sum in f32 instead of
// several that are rounded.
//
// Calls are joined only if all that reads their results takes columns, so that the results are
// columns of one matrix and nothing is copied.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "program/builder.h"

namespace syntra {
namespace {

// For each value, whether all instructions that read it take columns, and there are any.
std::vector<bool> ReadAsColumns(const Program& program) {
  std::vector<bool> columns(program.values.size(), true), read(program.values.size());
  for (const Instruction& instruction : program.instructions) {
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const Value input = instruction.inputs[k];
      if (!input) continue;
      read[input.id] = true;
      if (!instruction.TakesColumns(k, /*is_output=*/false)) columns[input.id] = false;
    }
  }
  for (const auto& [name, value] : program.outputs) columns[value.id] = false;
  for (size_t i = 0; i < read.size(); ++i) columns[i] = columns[i] && read[i];
  return columns;
}

// The op that could do this call together with others; null: there is none.
const char* JointOp(const Program& program, const Instruction& call,
                    const std::vector<bool>& columns) {
  const auto is_parameter = [&](Value v) { return program.IsParameter(v); };
  const auto is_columns = [&](Value v) {
    return v && columns[v.id] && program.info(v).type.shape[-1] % 8 == 0;
  };
  const char* joint = call.op->joint ? call.op->joint(call.call) : nullptr;
  const bool fits = joint &&
                    std::all_of(call.inputs.begin() + 1, call.inputs.end(), is_parameter) &&
                    std::ranges::all_of(call.outputs, is_columns);
  return fits ? joint : nullptr;
}

}  // namespace

// Groups calls by op, attributes, first input and region. Regions count also when they are not
// recomputed, so that recomputing changes no bit. Because a group lies within a region, its results
// and their gradients are kept no longer than a layer needs them.
std::vector<ProgramBuilder::JointCalls> ProgramBuilder::FindJointCalls() const {
  const std::vector<Instruction>& instructions = program_.instructions;
  const std::vector<bool> columns = ReadAsColumns(program_);
  std::map<std::tuple<std::string, std::string, int, int>, JointCalls> groups;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& call = instructions[i];
    const char* joint = JointOp(program_, call, columns);
    if (!joint) continue;
    const int region = join_ == Join::kAcrossRegions ? 0 : region_of_instruction_[i].number;
    JointCalls& group = groups[{joint, call.call.attributes.ToString(), call.inputs[0].id, region}];
    group.op = joint;
    if (group.calls.size() == kMostJoined) continue;
    // A gradient has one place for each parameter.
    const bool again = std::ranges::any_of(
        group.calls, [&](size_t other) { return instructions[other].inputs[1] == call.inputs[1]; });
    if (!again) group.calls.push_back(i);
  }
  std::vector<JointCalls> found;
  for (auto& [key, group] : groups) {
    if (group.calls.size() > 1) found.push_back(std::move(group));
  }
  return found;
}

void ProgramBuilder::JoinInFirst(const JointCalls& group) {
  Instruction& first = program_.instructions[group.calls[0]];
  RegionMark& region = region_of_instruction_[group.calls[0]];
  std::vector<Value> inputs = {first.inputs[0]}, outputs;
  for (const size_t i : group.calls) {
    const Instruction& call = program_.instructions[i];
    inputs.insert(inputs.end(), call.inputs.begin() + 1, call.inputs.end());
    outputs.insert(outputs.end(), call.outputs.begin(), call.outputs.end());
    if (region != region_of_instruction_[i]) region = {};
  }
  first = MakeInstruction(group.op, first.call.attributes, std::move(inputs));
  first.outputs = std::move(outputs);
}

void ProgramBuilder::RemoveInstructions(const std::set<size_t>& removed) {
  std::vector<Instruction>& instructions = program_.instructions;
  size_t kept = 0;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (removed.contains(i)) continue;
    region_of_instruction_[kept] = region_of_instruction_[i];
    std::swap(instructions[kept++], instructions[i]);
  }
  instructions.resize(kept);
  region_of_instruction_.resize(kept);
}

void ProgramBuilder::JoinCalls() {
  std::set<size_t> done;  // by the first of their group
  for (const JointCalls& group : FindJointCalls()) {
    JoinInFirst(group);
    done.insert(group.calls.begin() + 1, group.calls.end());
  }
  RemoveInstructions(done);
}

}  // namespace syntra
