// SPDX-License-Identifier: Apache-2.0
#include "model/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "model/architecture.h"
#include "model/positions.h"
#include "model/recurrence.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr const char* kCross = "cross_attention";

std::string NameOfLayer(size_t number) { return fmt::format("layer_{:02}", number); }

// The states of one mixer under names of their own.
MixerState StatesOf(const MixerState& all, const std::string& states) {
  return [&all, states](const std::string& name, const TensorType& type, StateKind kind) {
    return all(states + '/' + name, type, kind);
  };
}

// 0, 1, .. as i32 [1, length].
Value CountedPositions(ProgramBuilder& program, int64_t length) {
  std::vector<int32_t> positions(length);
  std::iota(positions.begin(), positions.end(), 0);
  return program.Constant({1, length}, std::move(positions));
}

}  // namespace

Stack::Stack(const ModelConfig& model, Side side) : model_(model), side_(side) {
  std::map<std::string, std::string> shared;  // the first layer of each name of weights
  for (const LayerGroup& group : LayersOf(model, side)) {
    const std::shared_ptr<const TokenMixer> mixer = MakeMixer(group.mixer);
    const size_t first = layers_.size();
    for (int64_t i = 0; i < group.repeat; ++i) {
      const std::string name = NameOfLayer(layers_.size());
      std::string weights = group.recurrence ? NameOfLayer(first) : name;
      if (!group.weights.empty()) weights = shared.emplace(group.weights, name).first->second;
      layers_.push_back({group, mixer, name, weights, i});
    }
  }
  if (side == Side::kDecoder && HasSide(model, Side::kEncoder)) {
    cross_ = MakeCrossMixer(model.cross_attention());
  }
}

bool Stack::reads_positions() const {
  return model_.has_positions() || std::ranges::any_of(layers_, [](const Layer& layer) {
           return layer.mixer->traits().reads_positions;
         });
}

bool Stack::ponders() const { return std::ranges::any_of(layers_, &Layer::ponders); }

void Stack::CheckIsIncremental() const {
  for (const Layer& layer : layers_) {
    const std::string reason = layer.mixer->traits().not_incremental;
    if (!reason.empty()) {
      Fail(ExitCode::kConfig, "model.{} with {}", layer.group.mixer_path, reason);
    }
  }
}

bool Stack::prefills() const {
  return std::ranges::all_of(layers_,
                             [](const Layer& layer) { return layer.mixer->traits().prefills; });
}

Value Stack::Build(const Scope& root, const StackInput& input,
                   TrainConfig::Recompute recompute) const {
  const Scope stack = root / NameOf(side_);
  const int64_t length = root.TypeOf(input.embedded).shape[1];
  CheckLength(length);
  const Value bias = Bias(stack, {length, length, !reads_ahead()});
  const int64_t reach = BiasReach(model_.relative_bias(), !reads_ahead());
  const auto mix = [&](const TokenMixer& mixer, const Scope& scope, Value x,
                       const std::string& states) {
    const MixerTraits traits = mixer.traits();
    return mixer.Build(scope, {.x = x,
                               .segments = input.segments,
                               .positions = traits.reads_positions ? input.positions : Value{},
                               .relative_bias = traits.bias_heads > 0 ? bias : Value{},
                               .bias_reach = reach,
                               .causal = side_ == Side::kDecoder,
                               .prefix_ends = input.prefix_ends,
                               .memory = input.memory,
                               .state = input.state ? StatesOf(input.state, states) : nullptr,
                               .length = input.length});
  };
  Start start{input.embedded, {}, input.segments, recompute};
  if (model_.has_positions()) {
    const Value positions =
        input.positions ? input.positions : CountedPositions(root.program(), length);
    start.positions = PositionVectors(root, model_, positions, length);
  }
  return Record(stack, start, mix);
}

void Stack::Prepare(const Scope& root, Value memory, const MixerState& state) const {
  for (const Layer& layer : layers_) {
    cross_->Prepare(root / NameOf(side_) / layer.weights / kCross, memory,
                    StatesOf(state, layer.name + '/' + kCross));
  }
}

Value Stack::BuildStep(const Scope& root, const StackStep& step) const {
  const Scope stack = root / NameOf(side_);
  CheckLength(step.length);
  const Value bias = Bias(stack, {1, step.length, !reads_ahead(), step.start});
  const auto mix = [&](const TokenMixer& mixer, const Scope& scope, Value x,
                       const std::string& states) {
    return mixer.BuildStep(scope, {.x = x,
                                   .start = step.start,
                                   .relative_bias = mixer.traits().bias_heads > 0 ? bias : Value{},
                                   .length = step.length,
                                   .bidirectional_prefix = model_.bidirectional_prefix(),
                                   .memory_segments = step.memory_segments,
                                   .state = StatesOf(step.state, states)});
  };
  Start start{step.embedded, {}, {}};
  if (model_.has_positions()) {
    start.positions = PositionVector(root, model_, step.start, step.length);
  }
  return Record(stack, start, mix);
}

Value Stack::Record(const Scope& stack, const Start& start, const Mix& mix) const {
  const auto adds_positions = [&](const Layer& layer) {
    return start.positions && layer.recurs() && layer.group.recurrence->positions();
  };
  const bool at_once = start.positions && !adds_positions(layers_.front());
  ResidualStream stream(at_once ? Add(stack, start.embedded, start.positions) : start.embedded,
                        model_);
  std::optional<Halting> halting;
  for (const Layer& layer : layers_) {
    const Scope scope = stack / layer.weights;
    const auto add = [&](const TokenMixer& mixer, const char* name) {
      const Scope inside = scope / name;
      stream.Add(inside, [&](Value in) { return mix(mixer, inside, in, layer.name + '/' + name); });
    };
    const auto begin_step = [&](Value state) {
      if (adds_positions(layer)) state = Add(scope, state, start.positions);
      state = AddStepSignal(scope, model_, layer.group, layer.step, state);
      if (!layer.halts()) return state;
      if (layer.step == 0) halting.emplace(scope, layer.group.recurrence->halting(), state);
      halting->Decide(scope, state);
      return state;
    };
    const auto end_step = [&](Value state) {
      halting->Take(scope, state);
      return layer.is_last_step() ? halting->output() : state;
    };
    const auto feed_forward = [&](const Scope& scope, Value in) {
      Value out;
      stack.program().Region(start.recompute == TrainConfig::FEED_FORWARD, [&] {
        out = FeedForward(scope, in, layer.group.feed_forward, model_.dropout());
      });
      return out;
    };
    stack.program().Region(start.recompute == TrainConfig::LAYERS, [&] {
      if (layer.recurs()) stream.Change(scope, begin_step);
      add(*layer.mixer, "mixer");
      if (cross_) add(*cross_, kCross);
      const Scope network = scope / "feed_forward";
      stream.Add(network, [&](Value in) { return feed_forward(network, in); });
      if (layer.halts()) stream.Change(scope, end_step);
    });
    if (layer.ponders() && layer.is_last_step() && stack.recording().training) {
      AddPonderLoss(stack, layer.group.recurrence->halting(), side_, halting->pondered(),
                    start.segments);
    }
  }
  return stream.Finish(stack);
}

Value Stack::Bias(const Scope& stack, const BiasExtent& extent) const {
  int64_t heads = 0;
  for (const Layer& layer : layers_) heads = std::max(heads, layer.mixer->traits().bias_heads);
  if (heads == 0) return {};
  return RelativeBias(stack, "relative_bias", model_.relative_bias(), heads, extent);
}

void Stack::CheckLength(int64_t length) const {
  for (const LengthLimit& limit : LengthLimitsOf(model_, side_)) {
    if (length <= limit.length) continue;
    Fail(ExitCode::kConfig,
         "the {}'s sequences have {} positions, but model.{} is for {} positions; raise it, or "
         "shorten the data",
         NameOf(side_), length, limit.field, limit.length);
  }
}

}  // namespace syntra
