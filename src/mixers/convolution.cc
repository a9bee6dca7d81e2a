// SPDX-License-Identifier: Apache-2.0
#include "mixers/convolution.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {

Value Affine(const Scope& scope, const std::string& name, Value x, int64_t out,
             const Initializer& initializer) {
  const Value y = Linear(scope, name, x, out, initializer);
  return AddBias(scope, name + "_bias", y);
}

Value Window(const Scope& scope, const MixerStep& step, const std::string& name, Value row,
             int64_t length) {
  if (length == 1) return row;
  const TensorType type = scope.TypeOf(row);
  const Value before = step.state(name, {type.dtype, {type.shape[0], length - 1, type.shape[2]}},
                                  StateKind::kRunning);
  const Value window = Concatenate(scope, 1, {before, row});
  scope.program().RecordUpdate("store", {}, {Slice(scope, window, 1, 1, length - 1)}, {before});
  return window;
}

MixerTraits ConvolutionMixer::traits() const {
  MixerTraits traits{.causal = true,
                     .packed_rows = PackedRows::kExact,
                     .stochastic = config_.weight_dropout() > 0};
  if (!is_mesh()) traits.width_divisor = {config_.heads(), "heads"};
  return traits;
}

void ConvolutionMixer::Validate(const FieldReport& report) const {
  const std::string heads = report.Path("heads");
  // The default is no setting: a full printout of a configuration has it, too.
  const bool sets_heads = config_.heads() != ConvolutionConfig().heads();
  if (is_mesh() && sets_heads) {
    report.Add({heads}, fmt::format("{} has no effect in form MESH, whose columns each have a "
                                    "filter; remove it or choose form FAIRSEQ",
                                    heads));
  }
}

Value ConvolutionMixer::Projected(const Scope& scope, const std::string& name, Value x,
                                  int64_t out) const {
  const int64_t in = scope.TypeOf(x).shape[-1];
  return Affine(scope, name, x, out,
                is_mesh() ? Initializer::Normal(1 / std::sqrt(static_cast<double>(in)))
                          : Initializer::GlorotUniform(in, out));
}

// The first half times the sigmoid of the second (gated linear unit), as wide as x.
Value ConvolutionMixer::Gated(const Scope& scope, Value x) const {
  const int64_t width = scope.TypeOf(x).shape[-1];
  if (!config_.glu()) return Projected(scope, "input", x, width);
  const Value both = Projected(scope, "input", x, 2 * width);
  const Value gate = Activation(scope, "sigmoid", Slice(scope, both, 2, width, width));
  return Multiply(scope, Slice(scope, both, 2, 0, width), gate);
}

// The authors project once. Mesh TensorFlow's separable convolution adds a bias and a projection of
// its own before that.
Value ConvolutionMixer::Output(const Scope& scope, Value x) const {
  const int64_t width = scope.TypeOf(x).shape[-1];
  if (is_mesh()) {
    x = AddBias(scope, "filter_bias", x);
    x = Projected(scope, "pointwise", x, width);
  }
  return Projected(scope, "output", x, width);
}

Value ConvolutionMixer::Build(const Scope& scope, const MixerInput& input) const {
  const Value gated = Gated(scope, input.x);
  // The middle tap is the position itself; of an even number there is one more after it.
  const int64_t left = input.causal ? taps() - 1 : (taps() - 1) / 2;
  const int64_t groups = filters(scope.TypeOf(gated).shape[-1]);
  return Output(scope, scope.One("depthwise_conv", {{"groups", groups}, {"left", left}},
                                 {gated, Weights(scope, gated), input.segments}));
}

// DropConnect drops weights after their softmax. Filters that are the same at every position lose
// the same taps at every position of an example.
Value ConvolutionMixer::Weights(const Scope& scope, Value x) const {
  const Shape shape = scope.TypeOf(x).shape;
  Value weights = scope.One("softmax", {}, {Scores(scope, x)});
  const int64_t width = filters(shape[2]) * taps();
  const bool by_position = scope.TypeOf(weights).shape.rank() == 4;
  if (by_position) weights = Reshape(scope, weights, {shape[0], shape[1], width});
  const double rate = scope.recording().training ? config_.weight_dropout() : 0;
  if (rate == 0) return weights;
  const auto for_all = [&](Value x, int64_t positions) {
    return BroadcastTo(scope, x, {DType::kF32, {shape[0], positions, width}});
  };
  if (by_position) return HeadDropout(scope, weights, rate, 1);
  weights = for_all(Reshape(scope, weights, {1, 1, width}), 1);
  return for_all(HeadDropout(scope, weights, rate, 1), shape[1]);
}

Value ConvolutionMixer::BuildStep(const Scope& scope, const MixerStep& step) const {
  const Value gated = Gated(scope, step.x);
  const TensorType type = scope.TypeOf(gated);
  const int64_t rows = type.shape[0], columns = type.shape[2], groups = filters(columns);
  const Value window = Window(scope, step, "window", gated, taps());
  // As [taps, filters, 1] for all rows, or [rows, taps, filters, 1].
  Value weights = scope.One("softmax", {}, {Scores(scope, gated)});
  if (scope.TypeOf(weights).shape.rank() == 4) {
    weights = Transpose(scope, weights, {0, 3, 2, 1});
  } else {
    weights = Transpose(scope, weights, {1, 0});
    weights = Reshape(scope, weights, {taps(), groups, 1});
  }
  const int64_t width = columns / groups;
  const Value sum = scope.One("sum_to",
                              {{"shape", Attributes::Integers{rows, 1, groups, width}},
                               {"dtype", std::string(NameOf(type.dtype))}},
                              {Reshape(scope, window, {rows, taps(), groups, width}), weights});
  return Output(scope, Reshape(scope, sum, {rows, 1, columns}));
}

}  // namespace syntra
