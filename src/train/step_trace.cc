// SPDX-License-Identifier: Apache-2.0
#include "train/step_trace.h"

#include <cmath>

#include "base/text.h"
#include "plan/op_work.h"

namespace syntra {
namespace {

std::string TypesOf(std::span<const TensorType> types) {
  std::vector<std::string> texts;
  for (const TensorType& type : types) texts.push_back(type.present() ? ToString(type) : "-");
  return Join(texts, ", ");
}

// The parameters that an instruction reads or whose gradients it makes.
std::string ParameterNames(const Program& program, const Instruction& instruction) {
  std::vector<std::string> names;
  for (const auto* values : {&instruction.inputs, &instruction.outputs}) {
    for (const Value value : *values) {
      if (value && !program.info(value).name.empty()) names.push_back(program.info(value).name);
    }
  }
  return Join(names, ", ");
}

// What the timeline shows of the instructions that one kernel ran. Of several updates, types and
// parameters are those of the first.
Json FactsOf(const Program& program, const RunTimes::Mark& mark) {
  const std::span done =
      std::span(program.instructions).subspan(mark.instruction, mark.instructions);
  const OpCall& call = done.front().call;
  double flops = 0, bytes = 0;
  for (const Instruction& instruction : done) {
    flops += instruction.flops();
    bytes += BytesMoved(instruction);
  }
  Json facts{{"inputs", TypesOf(call.inputs)}, {"outputs", TypesOf(call.outputs)}};
  const std::string names = ParameterNames(program, done.front());
  if (!names.empty()) facts["names"] = names;
  if (!call.attributes.empty()) facts["attributes"] = call.attributes.ToString();
  if (done.front().op->flops) facts["flops"] = flops;
  facts["bytes"] = bytes;
  facts["instruction"] = mark.instruction;
  if (mark.instructions > 1) facts["instructions"] = mark.instructions;
  return facts;
}

}  // namespace

Clock::time_point StepTrace::At(double seconds) const {
  return begin_ + std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

void StepTrace::StartsSum(int64_t elements) {
  buckets_.push_back({device_.MakeEvent(), elements});
  buckets_.back().ready->Record();
}

void StepTrace::AddInstructions(const RunTimes& run) {
  double begin = 0;
  for (const RunTimes::Mark& mark : run.marks) {
    const double end = clock_.SecondsUntil(*mark.event);
    if (mark.instructions > 0) {
      trace_.Add(TraceLane::kTraining, run.program->instructions[mark.instruction].op->name,
                 At(begin), At(end), FactsOf(*run.program, mark));
    }
    begin = end;
  }
}

void StepTrace::Finish() {
  const auto recording = Clock::now();
  double begin = 0;
  for (const auto& [phase, end] : clock_.Ends()) {
    trace_.Add(TraceLane::kTraining, kStepPhases[static_cast<size_t>(phase)], At(begin), At(end),
               Json::object());
    begin = end;
  }
  for (const Bucket& bucket : buckets_) {
    trace_.AddInstant(TraceLane::kTraining, "sum of gradients starts",
                      At(clock_.SecondsUntil(*bucket.ready)),
                      {{"bytes", bucket.elements * static_cast<int64_t>(sizeof(float))}});
  }
  for (const RunTimes& run : runs_) AddInstructions(run);
  trace_.Add(TraceLane::kTraining, "profile", recording, Clock::now(), Json::object());
}

}  // namespace syntra
