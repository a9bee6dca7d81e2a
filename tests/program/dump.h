// SPDX-License-Identifier: Apache-2.0
// Programs as text, for tests that compare what is recorded.
#pragma once

#include <fmt/format.h>

#include <string>
#include <variant>

#include "program/program.h"

namespace syntra {

inline std::string ValueName(const Program& program, Value value) {
  if (!value) return "-";
  const ValueInfo& info = program.info(value);
  if (info.kind == ValueKind::kConstant) {
    const double* everywhere = std::get_if<double>(&info.constant);
    return everywhere ? fmt::format("{}", *everywhere) : fmt::format("constant%{}", value.id);
  }
  return info.name.empty() ? fmt::format("%{}", value.id) : info.name;
}

// One line per instruction, stable across runs: "%7 f32[2, 3] = matmul(%1, encoder/x)
// {transpose_a=false}".
inline std::string Dump(const Program& program) {
  std::string text;
  for (const Instruction& instruction : program.instructions) {
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (i > 0) text += ", ";
      text += ValueName(program, instruction.outputs[i]);
      if (!instruction.outputs[i]) continue;
      text += ' ' + ToString(program.info(instruction.outputs[i]).type);
      if (instruction.call.accumulate[i]) text += " +";
    }
    text += " = " + instruction.op->name + '(';
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (i > 0) text += ", ";
      text += ValueName(program, instruction.inputs[i]);
    }
    text += ')';
    if (!instruction.call.attributes.empty())
      text += " {" + instruction.call.attributes.ToString() + '}';
    text += '\n';
  }
  for (const auto& [name, value] : program.outputs) {
    text += "output " + name + " = " + ValueName(program, value) + '\n';
  }
  return text;
}

}  // namespace syntra
