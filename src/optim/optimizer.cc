// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include "core/buffer.h"
#include "program/step_sums.h"

namespace syntra {

namespace {

int64_t Aligned(int64_t elements) {
  return static_cast<int64_t>(AlignUp(elements, Buffer::kAlignment / sizeof(float)));
}

std::string StateName(const Parameter& parameter, const char* what) {
  return fmt::format("optimizer/{}/{}", parameter.name, what);
}

// These elements of it; all of them are the parameter itself.
Parameter PartOf(const Parameter& parameter, const ElementRange& elements) {
  Parameter part = parameter;
  if (elements.size() < parameter.shape.size()) part.shape = {elements.size()};
  part.offset += elements.begin;
  return part;
}

}  // namespace

Optimizer::Optimizer(double clip_norm, const ParameterStore& parameters, ElementRange range)
    : clip_norm_(clip_norm),
      range_(range),
      blocks_(parameters.arena_elements() / ParameterStore::kBlock),
      state_elements_(Aligned(blocks_)) {}

ElementRange Optimizer::HeldOf(const Parameter& parameter) const {
  const int64_t begin = parameter.offset;
  const ElementRange held = range_.And({begin, begin + parameter.shape.size()});
  return {held.begin - begin, held.end - begin};
}

void Optimizer::AddState(const Parameter& parameter, const char* what, const Shape& shape) {
  ElementRange held = HeldOf(parameter);
  if (held.size() == 0) held = {};
  if (held.size() == parameter.shape.size()) held = {0, shape.size()};
  SYNTRA_CHECK(held.size() == 0 || held.size() == shape.size() || shape == parameter.shape,
               "{} is cut", parameter.name);
  state_.push_back({StateName(parameter, what), shape, held, state_elements_});
  state_elements_ += Aligned(held.size());
}

Value Optimizer::StateValue(ProgramBuilder& builder, const Parameter& parameter,
                            const char* what) const {
  const std::string name = StateName(parameter, what);
  for (const StateTensor& tensor : state_) {
    if (tensor.name != name) continue;
    const Shape held =
        tensor.held.size() < tensor.shape.size() ? Shape{tensor.held.size()} : tensor.shape;
    return builder.State(name, {DType::kF32, held}, tensor.offset);
  }
  Fail(ExitCode::kInternal, "no optimizer state {}", name);
}

// The order of the sum is that of the arena, wherever the range begins and ends. The padding of the
// gradients is always zero.
Value Optimizer::BlockSums(ProgramBuilder& builder) const {
  constexpr int64_t kBlock = ParameterStore::kBlock;
  const TensorType all{DType::kF32, {blocks_, 1}};
  if (const int64_t own = range_.size() / kBlock; own > 0) {
    Parameter gradients;
    gradients.name = "own";
    gradients.shape = {own, kBlock};
    gradients.offset = range_.begin;
    const Value g = builder.GradientOf(gradients);
    const Value sums = RecordOne(
        builder, "sum_to", {{"shape", Attributes::Integers{own, 1}}, {"dtype", "f32"}}, {g, g});
    builder.RecordUpdate(
        "store", {}, {sums},
        {builder.State("own block sums", {DType::kF32, {own, 1}}, range_.begin / kBlock)});
  }
  return builder.State("block sums", all, 0);
}

Program Optimizer::UpdateProgram(const ParameterStore& parameters) const {
  ProgramBuilder builder;
  const Value block_sums = BlockSums(builder);
  const Value sum_squares = RecordOne(
      builder, "sum_to", {{"shape", Attributes::Integers{1}}, {"dtype", "f32"}}, {block_sums, {}});
  const StepSums sums = StepSums::Of(builder, parameters);
  const Value hyper = RecordOne(
      builder, "clip_by_norm", {{"clip_norm", clip_norm_}},
      {builder.Input("hyper", {DType::kF32, {hyper_size()}}), sum_squares, sums.objective});
  for (const Parameter& parameter : parameters.all()) {
    const ElementRange held = HeldOf(parameter);
    if (!parameter.trainable || held.size() == 0) continue;
    RecordUpdate(builder, PartOf(parameter, held), hyper);
  }
  builder.Output("sum_squares", sum_squares);
  builder.Output("hyper_now", hyper);
  builder.Output("objective", sums.objective);
  builder.Output("statistics", sums.statistics);
  builder.Output("penalty", sums.penalty);
  return std::move(builder).Build();
}

}  // namespace syntra
