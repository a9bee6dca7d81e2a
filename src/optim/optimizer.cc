#include "optim/optimizer.h"

#include "core/buffer.h"

namespace syntra {

const StateTensor& Optimizer::AddState(std::string name, Shape shape) {
  state_.push_back({"optimizer/" + name, shape, state_elements_});
  state_elements_ +=
      static_cast<int64_t>(AlignUp(shape.size(), Buffer::kAlignment / sizeof(float)));
  return state_.back();
}

Value Optimizer::StateValue(ProgramBuilder& builder, const std::string& name) const {
  for (const StateTensor& tensor : state_) {
    if (tensor.name != "optimizer/" + name) continue;
    return builder.State(tensor.name, {DType::kF32, tensor.shape}, tensor.offset);
  }
  Fail(ExitCode::kInternal, "no optimizer state {}", name);
}

Program Optimizer::UpdateProgram(const ParameterStore& parameters) const {
  ProgramBuilder builder;
  const Value hyper = builder.Input("hyper", {DType::kF32, {hyper_size()}});
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) RecordUpdate(builder, parameter, hyper);
  }
  return std::move(builder).Build();
}

Program GradientNormProgram(const ParameterStore& parameters) {
  ProgramBuilder builder;
  // The arena as one tensor: its padding stays zero.
  Parameter arena;
  arena.name = "arena";
  arena.shape = {parameters.arena_elements()};
  builder.Output("sum_squares", RecordOne(builder, "sum_squares", {}, {builder.GradientOf(arena)}));
  return std::move(builder).Build();
}

}  // namespace syntra
