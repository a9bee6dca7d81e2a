// SPDX-License-Identifier: Apache-2.0
#include "plan/op_work.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

double TensorBytes(const TensorType& type) {
  return type.present() ? static_cast<double>(type.bytes()) : 0;
}

std::string TextOf(const std::vector<TensorType>& types) {
  std::vector<std::string> there;
  for (const TensorType& type : types) {
    if (type.present()) there.push_back(ToString(type));
  }
  return Join(there, ", ");
}

std::string OperandsOf(const OpCall& call) {
  return TextOf(call.inputs) + " -> " + TextOf(call.outputs);
}

// By op and operands.
using WorkByOp = std::map<std::pair<std::string, std::string>, OpWork>;

void AddProgram(const Program& program, double runs, WorkByOp& ops) {
  for (const Instruction& instruction : program.instructions) {
    OpWork& work = ops[{instruction.op->name, OperandsOf(instruction.call)}];
    work.calls += runs;
    work.flops += runs * instruction.flops();
    work.bytes += runs * BytesMoved(instruction);
  }
}

std::vector<OpWork> ListOf(WorkByOp ops) {
  std::vector<OpWork> list;
  for (auto& [key, work] : ops) {
    std::tie(work.op, work.operands) = key;
    list.push_back(std::move(work));
  }
  return list;
}

}  // namespace

double BytesMoved(const Instruction& instruction) {
  const std::vector<Value>& inputs = instruction.inputs;
  const OpCall& call = instruction.call;
  if (instruction.op->bytes) return instruction.op->bytes(call);
  double bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool again = std::find(inputs.begin(), before, inputs[i]) != before;
    if (!again) bytes += TensorBytes(call.inputs[i]);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const bool is_read = instruction.op->updates || Accumulates(call, i);
    bytes += (is_read ? 2 : 1) * TensorBytes(call.outputs[i]);
  }
  return bytes;
}

double BytesMoved(const Program& program) {
  double bytes = 0;
  for (const Instruction& instruction : program.instructions) bytes += BytesMoved(instruction);
  return bytes;
}

std::vector<OpWork> OpsOfStep(const TrainingPlan& plan) {
  WorkByOp ops;
  AddProgram(*plan.Training(), static_cast<double>(plan.partition().micro_batches_per_rank()), ops);
  AddProgram(plan.Update(plan.rank_with_most_state())->program, 1, ops);
  std::vector<OpWork> list = ListOf(std::move(ops));
  std::ranges::stable_sort(list, std::greater<>(),
                           [](const OpWork& work) { return std::pair(work.flops, work.bytes); });
  return list;
}

std::vector<OpWork> OpsOfRun(const RunTimes& times, bool by_operands) {
  WorkByOp ops;
  for (size_t i = 1; i < times.marks.size(); ++i) {
    const RunTimes::Mark& mark = times.marks[i];
    if (mark.instructions == 0) continue;
    const std::span done =
        std::span(times.program->instructions).subspan(mark.instruction, mark.instructions);
    const Instruction& first = done.front();
    OpWork& work = ops[{first.op->name, by_operands ? OperandsOf(first.call) : ""}];
    work.calls += 1;
    work.seconds += mark.event->SecondsSince(*times.marks[i - 1].event);
    for (const Instruction& instruction : done) {
      work.flops += instruction.flops();
      work.bytes += BytesMoved(instruction);
    }
  }
  std::vector<OpWork> list = ListOf(std::move(ops));
  std::ranges::stable_sort(list, std::greater<>(), &OpWork::seconds);
  return list;
}

}  // namespace syntra
