// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include "core/buffer.h"
#include "program/step_sums.h"

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
  // All gradients as one tensor. The padding between them is always zero.
  Parameter arena;
  arena.name = "all";
  arena.shape = {parameters.arena_elements()};
  const StepSums sums = StepSums::Of(builder, parameters);
  const Value sum_squares = RecordOne(builder, "sum_squares", {}, {builder.GradientOf(arena)});
  const Value hyper = RecordOne(
      builder, "clip_by_norm", {{"clip_norm", clip_norm_}},
      {builder.Input("hyper", {DType::kF32, {hyper_size()}}), sum_squares, sums.objective});
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) RecordUpdate(builder, parameter, hyper);
  }
  builder.Output("sum_squares", sum_squares);
  builder.Output("hyper_now", hyper);
  builder.Output("objective", sums.objective);
  builder.Output("statistics", sums.statistics);
  builder.Output("penalty", sums.penalty);
  return std::move(builder).Build();
}

}  // namespace syntra
