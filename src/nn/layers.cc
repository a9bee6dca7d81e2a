// SPDX-License-Identifier: Apache-2.0
#include "nn/layers.h"

#include <cmath>

#include "nn/tensors.h"

namespace syntra {
namespace {

std::string ActivationType(const Scope& scope) {
  return std::string(NameOf(scope.recording().activations));
}

Value WeightProduct(const Scope& scope, const char* op, const std::string& name, Value x,
                    int64_t out, const Initializer& initializer) {
  const Value weight = scope.Parameter(name, {scope.TypeOf(x).shape[-1], out}, initializer);
  return scope.One(
      op, {{"transpose_a", false}, {"transpose_b", false}, {"dtype", ActivationType(scope)}},
      {x, weight});
}

}  // namespace

Value Linear(const Scope& scope, const std::string& name, Value x, int64_t out,
             const Initializer& initializer) {
  return WeightProduct(scope, "matmul", name, x, out, initializer);
}

Value LinearRelu(const Scope& scope, const std::string& name, Value x, int64_t out,
                 const Initializer& initializer) {
  return WeightProduct(scope, "matmul_relu", name, x, out, initializer);
}

Value AddBias(const Scope& scope, const std::string& name, Value x) {
  const int64_t width = scope.TypeOf(x).shape[-1];
  const Value bias = scope.Parameter(name, {width}, Initializer::Constant(0));
  return Add(scope, x, bias);
}

Value Embed(const Scope& scope, Value table, Value ids) {
  return scope.One("embedding", {{"dtype", ActivationType(scope)}}, {ids, table});
}

namespace {

bool Drops(const Scope& scope, double rate) { return scope.recording().training && rate > 0; }

Value DropGroups(const Scope& scope, Value x, double rate, bool per_element, int64_t group) {
  if (!Drops(scope, rate)) return x;
  Recording& recording = scope.recording();
  return scope.One("dropout",
                   {{"rate", rate},
                    {"site", recording.next_dropout_site++},
                    {"per_element", per_element},
                    {"group", group}},
                   {x, recording.dropout_keys});
}

// An op that ends in dropout with the model's noise option.
Value WithDropout(const Scope& scope, const char* op, std::vector<Value> inputs, double rate) {
  Recording& recording = scope.recording();
  inputs.push_back(recording.dropout_keys);
  return scope.One(op,
                   {{"rate", rate},
                    {"site", recording.next_dropout_site++},
                    {"per_element", recording.dropout_noise == PER_ELEMENT}},
                   std::move(inputs));
}

}  // namespace

Value Dropout(const Scope& scope, Value x, double rate) {
  return DropGroups(scope, x, rate, scope.recording().dropout_noise == PER_ELEMENT, 1);
}

Value HeadDropout(const Scope& scope, Value value, double rate, int64_t head_size) {
  return DropGroups(scope, value, rate, true, head_size);
}

Value UniformNoise(const Scope& scope, const Shape& shape) {
  Recording& recording = scope.recording();
  SYNTRA_CHECK(recording.training, "noise outside training");
  return scope.One("uniform",
                   {{"shape", IntegersOf(shape)}, {"site", recording.next_dropout_site++}},
                   {recording.dropout_keys});
}

void ResidualStream::Add(const Scope& scope, const std::function<Value(Value x)>& sublayer) {
  if (model_.norm_placement() == ModelConfig::BEFORE) {
    pending_ = sublayer(AddAndNormalise(scope));
    return;
  }
  pending_ = sublayer(Sum(scope));
  sum_ = AddAndNormalise(scope);
}

void ResidualStream::Change(const Scope& scope, const std::function<Value(Value x)>& change) {
  sum_ = change(Sum(scope));
}

Value ResidualStream::Finish(const Scope& scope) {
  if (model_.norm_placement() == ModelConfig::AFTER) return sum_;
  return Dropout(scope, AddAndNormalise(scope), model_.dropout());
}

Value ResidualStream::Sum(const Scope& scope) {
  if (!pending_) return sum_;
  const Value added = Dropout(scope, pending_, model_.dropout());
  sum_ = sum_ ? syntra::Add(scope, sum_, added) : added;
  pending_ = {};
  return sum_;
}

Value ResidualStream::AddAndNormalise(const Scope& scope) {
  const int64_t width = scope.TypeOf(pending_ ? pending_ : sum_).shape[-1];
  const auto parameter = [&](const char* name, double start) {
    return scope.Parameter(name, {width}, Initializer::Constant(start));
  };
  const Value scale = parameter("norm", 1);
  if (model_.norm() == ModelConfig::RMS_NORM) return AddAndRmsNormalise(scope, scale);
  const Value sum = Sum(scope);
  return scope.program().Record("layer_norm", {{"epsilon", model_.norm_epsilon()}},
                                {sum, scale, parameter("norm_bias", 0)})[0];
}

Value ResidualStream::AddAndRmsNormalise(const Scope& scope, Value scale) {
  Recording& recording = scope.recording();
  const double rate = recording.training && pending_ ? model_.dropout() : 0.0;
  const std::vector<Value> outputs =
      scope.program().Record("add_norm",
                             {{"epsilon", model_.norm_epsilon()},
                              {"rate", rate},
                              {"site", rate > 0 ? recording.next_dropout_site++ : int64_t{0}},
                              {"per_element", recording.dropout_noise == PER_ELEMENT}},
                             {pending_ ? sum_ : Value{}, pending_ ? pending_ : sum_, scale,
                              rate > 0 ? recording.dropout_keys : Value{}});
  sum_ = outputs[0];
  pending_ = {};
  return outputs[1];
}

namespace {

// How a matrix by which x is multiplied starts.
Initializer FeedForwardInitializer(const Scope& scope, Value x, const FeedForwardConfig& config) {
  const double deviation = 1 / std::sqrt(static_cast<double>(scope.TypeOf(x).shape[-1]));
  return config.initialization() == FeedForwardConfig::NORMAL
             ? Initializer::Normal(deviation)
             : Initializer::TruncatedNormal(deviation);
}

Value FeedForwardLinear(const Scope& scope, const std::string& name, Value x, int64_t out,
                        const FeedForwardConfig& config) {
  const Value y = Linear(scope, name, x, out, FeedForwardInitializer(scope, x, config));
  return config.bias() ? AddBias(scope, name + "_bias", y) : y;
}

// f(W_i x) or gelu(W_i x) * (W_g x), with dropout, as one op where there is one.
Value HiddenValues(const Scope& scope, Value x, const FeedForwardConfig& config, double dropout) {
  const auto linear = [&](const char* name) {
    return FeedForwardLinear(scope, name, x, config.width(), config);
  };
  const bool drops = Drops(scope, dropout);
  switch (config.activation()) {
    case FeedForwardConfig::GATED_GELU: {
      const std::vector<Value> both = {linear("input"), linear("gate")};
      if (drops) return WithDropout(scope, "gated_gelu_dropout", both, dropout);
      return scope.One("gated_gelu", {}, both);
    }
    case FeedForwardConfig::GELU:
      return Dropout(scope, Activation(scope, "gelu_tanh", linear("input")), dropout);
    default:
      if (drops) return WithDropout(scope, "relu_dropout", {linear("input")}, dropout);
      if (config.bias()) return Activation(scope, "relu", linear("input"));
      return LinearRelu(scope, "input", x, config.width(),
                        FeedForwardInitializer(scope, x, config));
  }
}

}  // namespace

Value FeedForward(const Scope& scope, Value x, const FeedForwardConfig& config, double dropout) {
  const Value hidden = HiddenValues(scope, x, config, dropout);
  return FeedForwardLinear(scope, "output", hidden, scope.TypeOf(x).shape[-1], config);
}

}  // namespace syntra
