// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <algorithm>

#include "core/buffer.h"
#include "program/step_sums.h"

namespace syntra {

using OptimizerMaker = std::unique_ptr<Optimizer>(const OptimizerConfig& config,
                                                  const ParameterStore& parameters,
                                                  std::span<const ElementRange> parts);
#define SYNTRA_OPTIMIZER(kind, name, grain) OptimizerMaker optimizer_##name;
#include "optim/optimizers.def"
#undef SYNTRA_OPTIMIZER

namespace {

struct OptimizerRow {
  OptimizerConfig::Kind kind;
  OptimizerMaker* make;
  UpdateGrain grain;
};

constexpr OptimizerRow kOptimizers[] = {
#define SYNTRA_OPTIMIZER(kind, name, grain) \
  {OptimizerConfig::kind, optimizer_##name, UpdateGrain::grain},
#include "optim/optimizers.def"
#undef SYNTRA_OPTIMIZER
};

static_assert(std::size(kOptimizers) == OptimizerConfig::Kind_ARRAYSIZE,
              "a value of OptimizerConfig.Kind has no line in optimizers.def");

const OptimizerRow& RowOf(const OptimizerConfig& config) {
  const auto* row = std::ranges::find(kOptimizers, config.kind(), &OptimizerRow::kind);
  SYNTRA_CHECK(row != std::end(kOptimizers), "no optimizer is of kind {}",
               static_cast<int>(config.kind()));
  return *row;
}

int64_t Aligned(int64_t elements) {
  return static_cast<int64_t>(AlignUp(elements, Buffer::kAlignment / sizeof(float)));
}

}  // namespace

std::vector<ElementRange> PartsOf(const Parameter& parameter, std::span<const ElementRange> arena) {
  const int64_t begin = parameter.offset, end = begin + parameter.shape.size();
  std::vector<ElementRange> parts;
  for (const ElementRange& range : arena) {
    const ElementRange part = range.And({begin, end});
    if (part.size() > 0) parts.push_back({part.begin - begin, part.end - begin});
  }
  return parts;
}

std::vector<ElementRange> StateTensor::HeldOf(std::span<const ElementRange> arena) const {
  std::vector<ElementRange> parts = PartsOf(*parameter, arena);
  if (parts.empty() || shape == parameter->shape) return parts;
  SYNTRA_CHECK(CountOf(parts) == parameter->shape.size(), "{} is cut", parameter->name);
  return {{0, shape.size()}};
}

Optimizer::Optimizer(double clip_norm, const ParameterStore& parameters,
                     std::span<const ElementRange> parts)
    : clip_norm_(clip_norm), blocks_(parameters.blocks()), state_elements_(Aligned(blocks_)) {
  for (const ElementRange& part : parts) {
    parts_.push_back(part.And({0, blocks_ * ParameterStore::kBlock}));
  }
  ranges_ = Joined(parts_);
}

void Optimizer::AddState(const Parameter& parameter, const char* what, const Shape& shape) {
  StateTensor tensor{.parameter = &parameter,
                     .name = fmt::format("optimizer/{}/{}", parameter.name, what),
                     .shape = shape,
                     .held = {},
                     .offset = state_elements_};
  tensor.held = tensor.HeldOf(ranges_);
  state_elements_ += Aligned(CountOf(tensor.held));
  state_.push_back(std::move(tensor));
}

// The order of the sum is that of the arena, wherever the parts begin and end. The padding of the
// gradients is always zero.
void Optimizer::RecordBlockSums(ProgramBuilder& builder, const ElementRange& part) {
  constexpr int64_t kBlock = ParameterStore::kBlock;
  const int64_t own = part.size() / kBlock, first = part.begin / kBlock;
  Parameter gradients;
  gradients.name = fmt::format("blocks from {}", first);
  gradients.shape = {own, kBlock};
  gradients.offset = part.begin;
  const Value g = builder.GradientOf(gradients);
  const Value sums = RecordOne(builder, "sum_to",
                               {{"shape", Attributes::Integers{own, 1}}, {"dtype", "f32"}}, {g, g});
  builder.RecordUpdate(
      "store", {}, {sums},
      {builder.State(fmt::format("block sums from {}", first), {DType::kF32, {own, 1}}, first)});
}

void Optimizer::RecordPart(ProgramBuilder& builder, const Parameter& parameter,
                           const ElementRange& elements, int64_t behind, Value hyper) const {
  Parameter part = parameter;
  part.offset += elements.begin;
  const bool is_cut = elements.size() < parameter.shape.size();
  const std::string place = is_cut ? fmt::format("[{}, {})", elements.begin, elements.end) : "";
  if (is_cut) part.shape = {elements.size()};
  part.name += place;
  std::vector<Value> state;
  for (const StateTensor& tensor : state_) {
    if (tensor.parameter->name != parameter.name) continue;
    const TensorType type{DType::kF32, is_cut ? part.shape : tensor.shape};
    state.push_back(builder.State(tensor.name + place, type, tensor.offset + behind));
  }
  RecordUpdate(builder, part, state, hyper);
}

RecordedUpdate Optimizer::UpdateProgram(const ParameterStore& parameters) const {
  ProgramBuilder builder;
  std::vector<size_t> block_sum_ends;
  for (const ElementRange& part : parts_) {
    if (part.size() > 0) RecordBlockSums(builder, part);
    block_sum_ends.push_back(builder.instruction_count());
  }
  const Value block_sums = builder.State("block sums", {DType::kF32, {blocks_, 1}}, 0);
  const Value sum_squares = RecordOne(
      builder, "sum_to", {{"shape", Attributes::Integers{1}}, {"dtype", "f32"}}, {block_sums, {}});
  const StepSums sums = StepSums::Of(builder, parameters);
  const Value given = builder.Input("hyper", {DType::kF32, {std::ssize(Hyper({}))}});
  const Value hyper = RecordOne(builder, "clip_by_norm", {{"clip_norm", clip_norm_}},
                                {given, sum_squares, sums.objective});
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable) continue;
    int64_t behind = 0;
    for (const ElementRange& held : HeldOf(parameter)) {
      RecordPart(builder, parameter, held, behind, hyper);
      behind += held.size();
    }
  }
  builder.Output("sum_squares", sum_squares);
  builder.Output("hyper_now", hyper);
  builder.Output("objective", sums.objective);
  builder.Output("statistics", sums.statistics);
  builder.Output("penalty", sums.penalty);
  return {std::move(builder).Build(), std::move(block_sum_ends)};
}

UpdateGrain GrainOf(const OptimizerConfig& config) { return RowOf(config).grain; }

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters,
                                         std::span<const ElementRange> parts) {
  return RowOf(config).make(config, parameters, parts);
}

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters) {
  const ElementRange all{0, parameters.arena_elements()};
  return MakeOptimizer(config, parameters, std::span(&all, 1));
}

}  // namespace syntra
