// SPDX-License-Identifier: Apache-2.0
#include "program/bind.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>

#include "base/text.h"

namespace syntra {
namespace {

// The instruction after the last of those from `first` on that are updates by one op, none of which
// uses what another changes.
size_t EndOfUpdates(const Program& program, size_t first) {
  const Op* op = program.instructions[first].op;
  std::set<int> used, changed;
  size_t end = first;
  for (; op->updates && end < program.instructions.size() && program.instructions[end].op == op;
       ++end) {
    const Instruction& instruction = program.instructions[end];
    const auto meets = [](const std::vector<Value>& values, const std::set<int>& others) {
      return std::ranges::any_of(values, [&](Value v) { return v && others.contains(v.id); });
    };
    if (meets(instruction.inputs, changed) || meets(instruction.outputs, changed) ||
        meets(instruction.outputs, used)) {
      break;
    }
    for (const Value input : instruction.inputs) used.insert(input.id);
    for (const Value output : instruction.outputs) changed.insert(output.id);
  }
  return end;
}

// Whether all numbers that an op reads, but for its first input, are parameters.
bool WeightsAreParameters(const Program& program, const Instruction& instruction) {
  const auto is_fixed = [&](Value input) {
    return !input || !IsFloat(program.info(input).type.dtype) || program.IsParameter(input);
  };
  return instruction.inputs.size() > 1 && program.IsParameter(instruction.inputs[1]) &&
         std::ranges::all_of(instruction.inputs | std::views::drop(1), is_fixed);
}

// The call as the backend binds it, with values in these places; fills the copies that it uses.
OpCall StoredCall(const Program& program, const Instruction& instruction,
                  const std::vector<Place>& places, Backend& backend, const ParameterForms& forms,
                  UsedCopies* copies) {
  OpCall call = instruction.call;
  const auto store = [&](std::vector<TensorType>& types, const std::vector<Value>& values) {
    for (size_t i = 0; i < types.size(); ++i) {
      types[i] = backend.Stored(types[i]);
      if (values[i]) types[i].pitch = places[values[i].id].pitch;
    }
  };
  store(call.inputs, instruction.inputs);
  store(call.outputs, instruction.outputs);
  const bool reads_copies = forms.rounded && backend.RoundsParameters(*instruction.op, call);
  for (size_t i = 0; reads_copies && i < call.inputs.size(); ++i) {
    if (!program.IsParameter(instruction.inputs[i])) continue;
    call.inputs[i].dtype = DType::kBF16;
    copies->read.insert(i);
  }
  if (WeightsAreParameters(program, instruction)) call.packed_weights = forms.packed;
  if (forms.rounded && instruction.op->updates && program.IsParameter(instruction.outputs[0])) {
    call.outputs.push_back({DType::kBF16, call.outputs[0].shape});
    copies->written = true;
  }
  return call;
}

// The kernels of the updates [first, end), if the backend has one kernel for all.
std::vector<InstructionKernels> BindUpdates(const Program& program, size_t first, size_t end,
                                            const std::vector<Place>& places, Backend& backend,
                                            const ParameterForms& forms) {
  if (end - first < 2) return {};
  std::vector<InstructionKernels> kernels(end - first);
  std::vector<OpCall> calls;
  for (size_t i = first; i < end; ++i) {
    InstructionKernels& own = kernels[i - first];
    own.instructions = i == first ? end - first : 0;
    calls.push_back(
        StoredCall(program, program.instructions[i], places, backend, forms, &own.copies));
  }
  std::optional<BoundKernel> all = backend.BindMultiTensor(*program.instructions[first].op, calls);
  if (!all) return {};
  kernels[0].add = *std::move(all);
  return kernels;
}

}  // namespace

std::vector<InstructionKernels> BindInstructions(const Program& program, Backend& backend,
                                                 const ParameterForms& forms) {
  const auto [places, idle] = FindAliases(program);
  std::vector<InstructionKernels> kernels;
  std::set<int> written;
  std::set<std::string> missing;
  const auto bind = [&](const Op& op, const OpCall& call) {
    ErrorContext context([&] { return fmt::format("binding {}", op.name); });
    std::optional<BoundKernel> kernel = backend.Bind(op, call);
    if (!kernel) missing.insert(op.name + " {" + call.attributes.ToString() + "}");
    return kernel.value_or(BoundKernel());
  };
  size_t alone_before = 0;  // updates that no one kernel does
  while (kernels.size() < program.instructions.size()) {
    const size_t i = kernels.size();
    if (i >= alone_before) {
      const size_t end = EndOfUpdates(program, i);
      std::vector<InstructionKernels> updates =
          BindUpdates(program, i, end, places, backend, forms);
      if (!updates.empty()) {
        std::ranges::move(updates, std::back_inserter(kernels));
        continue;
      }
      alone_before = end;
    }
    const Instruction& instruction = program.instructions[i];
    if (idle[i]) {
      kernels.push_back({});
      continue;
    }
    InstructionKernels& bound = kernels.emplace_back();
    OpCall call = StoredCall(program, instruction, places, backend, forms, &bound.copies);
    bound.add = bind(*instruction.op, call);
    bool first = false;
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      const Value output = instruction.outputs[k];
      if (!output || program.info(output).kind != ValueKind::kGradient) continue;
      if (!written.insert(output.id).second) continue;
      call.accumulate[k] = false;
      first = true;
    }
    if (first) bound.replace = bind(*instruction.op, call);
  }
  if (!missing.empty()) {
    Fail(ExitCode::kResources, "no {} kernel for:\n  {}", backend.name(),
         Join(std::vector(missing.begin(), missing.end()), "\n  "));
  }
  return kernels;
}

std::vector<size_t> WorkspacesOf(const std::vector<InstructionKernels>& kernels) {
  std::vector<size_t> bytes;
  bytes.reserve(kernels.size());
  for (const InstructionKernels& kernel : kernels) bytes.push_back(kernel.workspace_bytes());
  return bytes;
}

}  // namespace syntra
