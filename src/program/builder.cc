// SPDX-License-Identifier: Apache-2.0
#include "program/builder.h"

#include <algorithm>

namespace syntra {

Value ProgramBuilder::NewValue(ValueInfo info) {
  program_.values.push_back(std::move(info));
  trainable_.push_back(false);
  gradient_slot_.push_back(-1);
  return {static_cast<int>(program_.values.size()) - 1};
}

Value ProgramBuilder::Named(ValueInfo info) {
  const auto it = named_.find(info.name);
  if (it == named_.end()) return named_[info.name] = NewValue(info);
  const ValueInfo& known = program_.info(it->second);
  SYNTRA_CHECK(known.kind == info.kind && known.type == info.type && known.offset == info.offset,
               "{} is {}, used as {}, or names two things", info.name, ToString(known.type),
               ToString(info.type));
  return it->second;
}

Value ProgramBuilder::Input(const std::string& name, TensorType type) {
  return Named({.type = type, .kind = ValueKind::kInput, .name = name});
}

Value ProgramBuilder::AddConstant(ValueInfo info) {
  for (const Value known : constants_) {
    const ValueInfo& other = program_.info(known);
    if (other.type == info.type && other.constant == info.constant) return known;
  }
  return constants_.emplace_back(NewValue(std::move(info)));
}

Value ProgramBuilder::FillConstant(TensorType type, double value) {
  return AddConstant({.type = type, .kind = ValueKind::kConstant, .constant = value});
}

Value ProgramBuilder::Parameter(const syntra::Parameter& parameter) {
  const Value value = Named({.type = {DType::kF32, parameter.shape},
                             .kind = ValueKind::kParameter,
                             .name = parameter.name,
                             .offset = parameter.offset});
  if (parameter.trainable && !trainable_[value.id]) {
    trainable_[value.id] = true;
    const Value slot = GradientOf(parameter);
    gradient_slot_[value.id] = slot.id;
  }
  return value;
}

Value ProgramBuilder::GradientOf(const syntra::Parameter& parameter) {
  return Named({.type = {DType::kF32, parameter.shape},
                .kind = ValueKind::kGradient,
                .name = "gradient:" + parameter.name,
                .offset = parameter.offset});
}

Value ProgramBuilder::StepSum(const std::string& name, TensorType type,
                              const ParameterStore& parameters, int place) {
  SYNTRA_CHECK(
      place < ParameterStore::kMostSums && type.shape.size() <= ParameterStore::kSumElements,
      "{} {} at place {} of the step's sums", name, ToString(type), place);
  return Named({.type = type,
                .kind = ValueKind::kGradient,
                .name = name,
                .offset = parameters.arena_elements() + place * ParameterStore::kSumElements});
}

void ProgramBuilder::AddToStepSum(Value sum, Value value) {
  Instruction instruction = MakeInstruction("copy", TypeLike(sum), {value});
  SYNTRA_CHECK(instruction.call.outputs[0] == TypeOf(sum), "{} added to {}",
               ToString(TypeOf(value)), ToString(TypeOf(sum)));
  instruction.call.accumulate[0] = true;
  instruction.outputs = {sum};
  program_.instructions.push_back(std::move(instruction));
  region_of_instruction_.emplace_back();
}

Value ProgramBuilder::State(const std::string& name, TensorType type, int64_t offset) {
  return Named({.type = type, .kind = ValueKind::kState, .name = name, .offset = offset});
}

Instruction ProgramBuilder::MakeInstruction(std::string_view op, Attributes attributes,
                                            std::vector<Value> inputs) const {
  Instruction instruction;
  instruction.op = &GetOp(op);
  ErrorContext context([&] { return fmt::format("recording {}", op); });
  for (const Value input : inputs) {
    instruction.call.inputs.push_back(input ? TypeOf(input) : TensorType{.dtype = DType::kNone});
  }
  instruction.call.outputs = instruction.op->infer(attributes, instruction.call.inputs);
  instruction.call.attributes = std::move(attributes);
  instruction.call.accumulate.assign(instruction.call.outputs.size(), false);
  instruction.inputs = std::move(inputs);
  return instruction;
}

std::vector<Value> ProgramBuilder::Record(std::string_view op, Attributes attributes,
                                          std::vector<Value> inputs) {
  Instruction instruction = MakeInstruction(op, std::move(attributes), std::move(inputs));
  SYNTRA_CHECK(!instruction.op->updates, "{} updates its outputs", op);
  for (const TensorType& type : instruction.call.outputs) {
    instruction.outputs.push_back(type.present() ? NewValue({.type = type}) : Value{});
  }
  program_.instructions.push_back(instruction);
  region_of_instruction_.push_back(open_region_);
  return instruction.outputs;
}

void ProgramBuilder::RecordUpdate(std::string_view op, Attributes attributes,
                                  std::vector<Value> inputs, std::vector<Value> outputs) {
  Instruction instruction = MakeInstruction(op, std::move(attributes), std::move(inputs));
  SYNTRA_CHECK(instruction.op->updates, "{} does not update its outputs", op);
  for (size_t i = 0; i < instruction.call.outputs.size(); ++i) {
    if (outputs[i]) {
      SYNTRA_CHECK(instruction.call.outputs[i] == TypeOf(outputs[i]),
                   "output {} of {} is {}, not {}", i, op, ToString(TypeOf(outputs[i])),
                   ToString(instruction.call.outputs[i]));
    } else {
      instruction.call.outputs[i].dtype = DType::kNone;
    }
  }
  instruction.outputs = std::move(outputs);
  program_.instructions.push_back(std::move(instruction));
  region_of_instruction_.emplace_back();
}

void ProgramBuilder::Output(const std::string& name, Value value) {
  SYNTRA_CHECK(value, "output {} is absent", name);
  SYNTRA_CHECK(program_.outputs.emplace(name, value).second, "two outputs {}", name);
}

void ProgramBuilder::Region(bool recompute, const std::function<void()>& record) {
  SYNTRA_CHECK(!recompute || !open_region_.recomputed, "recompute regions do not nest");
  const RegionMark outer = open_region_;
  ++regions_;
  // A region within a recomputed one is a part of it.
  if (!outer.recomputed) open_region_ = {regions_, recompute};
  record();
  open_region_ = outer;
}

void ProgramBuilder::EndForwardHalf() {
  JoinCalls();
  program_.backward_begin = program_.instructions.size();
}

void ProgramBuilder::LeaveOutUnread() {
  std::vector<bool> read(program_.values.size());
  for (const Instruction& instruction : program_.instructions) {
    for (const Value input : instruction.inputs) {
      if (input) read[input.id] = true;
    }
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (instruction.call.accumulate[k]) read[instruction.outputs[k].id] = true;
    }
  }
  for (const auto& [name, value] : program_.outputs) read[value.id] = true;
  const auto is_needed = [&](Value value) {
    return value && (read[value.id] || program_.info(value).kind != ValueKind::kTransient);
  };
  for (Instruction& instruction : program_.instructions) {
    if (std::ranges::none_of(instruction.outputs, is_needed)) continue;
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (is_needed(instruction.outputs[k])) continue;
      instruction.call.outputs[k] = {.dtype = DType::kNone};
      instruction.outputs[k] = {};
    }
  }
}

Program ProgramBuilder::Build() && {
  if (program_.backward_begin == 0) EndForwardHalf();
  LeaveOutUnread();
  for (const Instruction& instruction : program_.instructions)
    program_.flops += instruction.flops();
  program_.flops -= program_.recomputed_flops;
  return std::move(program_);
}

Value RecordOne(Recorder& recorder, std::string_view op, Attributes attributes,
                std::vector<Value> inputs) {
  return recorder.Record(op, std::move(attributes), std::move(inputs)).at(0);
}

}  // namespace syntra
