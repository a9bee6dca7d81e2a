#include "program/program.h"

namespace syntra {

double Program::model_flops() const {
  double forward = 0;
  for (size_t i = 0; i < backward_begin; ++i) {
    if (steps[i].op->flops) forward += steps[i].op->flops(steps[i].call);
  }
  return 3 * forward;
}

namespace {

std::string NameOf(const Program& program, Value value) {
  if (!value) return "-";
  const ValueInfo& info = program.info(value);
  if (info.kind == ValueKind::kConstant) return fmt::format("{}", info.constant);
  return info.name.empty() ? fmt::format("%{}", value.id) : info.name;
}

}  // namespace

std::string Dump(const Program& program) {
  std::string text;
  for (const Step& step : program.steps) {
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (i > 0) text += ", ";
      text += NameOf(program, step.outputs[i]);
      if (!step.outputs[i]) continue;
      text += ' ' + ToString(program.info(step.outputs[i]).type);
      if (step.call.accumulate[i]) text += " +";
    }
    text += " = " + step.op->name + '(';
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (i > 0) text += ", ";
      text += NameOf(program, step.inputs[i]);
    }
    text += ')';
    if (!step.call.attributes.empty()) text += " {" + step.call.attributes.ToString() + '}';
    text += '\n';
  }
  for (const auto& [name, value] : program.outputs) {
    text += "output " + name + " = " + NameOf(program, value) + '\n';
  }
  return text;
}

}  // namespace syntra
