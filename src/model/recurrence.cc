// SPDX-License-Identifier: Apache-2.0
#include "model/recurrence.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/sinusoids.h"
#include "nn/tensors.h"

namespace syntra {

Value AddStepSignal(const Scope& layer, const ModelConfig& model, const LayerGroup& group,
                    int64_t step, Value state) {
  const RecurrenceConfig::StepSignal kind = group.recurrence->step_signal();
  if (kind == RecurrenceConfig::NONE) return state;
  const int64_t width = model.width();
  if (kind == RecurrenceConfig::LEARNED) {
    const Value table =
        layer.Parameter("step_embedding", {group.repeat, width}, Initializer::Normal(1));
    return Add(layer, state, Slice(layer, table, 0, step, 1));
  }
  const std::vector<float> table =
      SinusoidTable(model.positions().sinusoidal().layout(), group.repeat, width);
  const auto row = table.begin() + step * width;
  return Add(layer, state, layer.program().Constant({width}, std::vector<float>(row, row + width)));
}

Halting::Halting(const Scope& layer, const HaltingConfig& config, Value state) : config_(config) {
  const Shape shape = layer.TypeOf(state).shape;
  const TensorType each{DType::kF32, {shape[0], shape[1], 1}};
  running_ = layer.program().FillConstant(each, 1);
  halted_ = pondered_ = layer.program().FillConstant(each, 0);
}

void Halting::Decide(const Scope& layer, Value state) {
  const Scope scope = layer / "halting";
  const Shape shape = scope.TypeOf(state).shape;
  const double deviation = 1 / std::sqrt(static_cast<double>(shape[2]));
  const Value weight = scope.Parameter("weight", {shape[2]}, Initializer::Normal(deviation));
  const Value bias = scope.Parameter("bias", {1}, Initializer::Constant(config_.bias()));
  const Value logit = Add(scope, SumTo(scope, state, {shape[0], shape[1], 1}, weight), bias);
  const Value p = Activation(scope, "sigmoid", logit);
  const auto times = [&](Value a, Value b) { return Multiply(scope, a, b); };

  const Value total = Add(scope, halted_, times(p, running_));
  const Value halts = times(running_, IsAbove(scope, total, 1 - config_.epsilon()));
  const Value rest = times(halts, AffineMap(scope, halted_, -1, 1));
  pondered_ = Add(scope, pondered_, Add(scope, running_, rest));
  running_ = Add(scope, running_, AffineMap(scope, halts, -1));
  const Value part = times(p, running_);
  halted_ = Add(scope, halted_, part);
  weight_ = Add(scope, part, rest);
}

void Halting::Take(const Scope& layer, Value state) {
  const Value taken = Multiply(layer, state, weight_);
  const Value others = AffineMap(layer, weight_, -1, 1);
  output_ = output_ ? Add(layer, taken, Multiply(layer, output_, others)) : taken;
}

std::string InversePositionsName(Side side) {
  return fmt::format("inverse_{}_positions", NameOf(side));
}

void AddPonderLoss(const Scope& stack, const HaltingConfig& config, Side side, Value pondered,
                   Value segments) {
  const Value inverse = stack.program().Input(InversePositionsName(side), {DType::kF32, {1}});
  const Value sum = SumTo(stack, WithoutPadding(stack, pondered, segments), {1});
  const Value mean = Multiply(stack, sum, inverse);
  stack.recording().penalties.push_back(AffineMap(stack, mean, config.loss_weight()));
}

}  // namespace syntra
