// SPDX-License-Identifier: Apache-2.0
#include "nn/layers.h"

#include <cmath>

namespace syntra {
namespace {

std::string ActivationType(const Scope& scope) {
  return std::string(NameOf(scope.recording().activations));
}

}  // namespace

namespace {

Value Product(const Scope& scope, const char* op, const std::string& name, Value x,
              const LinearSpec& spec) {
  const int64_t in = scope.TypeOf(x).shape[-1];
  const Value weight = scope.Parameter(name, {in, spec.out}, spec.axes, spec.initializer);
  return scope.One(
      op, {{"transpose_a", false}, {"transpose_b", false}, {"dtype", ActivationType(scope)}},
      {x, weight});
}

}  // namespace

Value Linear(const Scope& scope, const std::string& name, Value x, const LinearSpec& spec) {
  return Product(scope, "matmul", name, x, spec);
}

Value LinearRelu(const Scope& scope, const std::string& name, Value x, const LinearSpec& spec) {
  return Product(scope, "matmul_relu", name, x, spec);
}

Value Embed(const Scope& scope, Value table, Value ids) {
  return scope.One("embedding", {{"dtype", ActivationType(scope)}}, {ids, table});
}

namespace {

Value DropGroups(const Scope& scope, Value x, double rate, bool per_element, int64_t group) {
  Recording& recording = scope.recording();
  if (!recording.training || rate == 0) return x;
  return scope.One("dropout",
                   {{"rate", rate},
                    {"site", recording.next_dropout_site++},
                    {"per_element", per_element},
                    {"group", group}},
                   {x, recording.dropout_keys});
}

}  // namespace

Value Dropout(const Scope& scope, Value x, double rate) {
  return DropGroups(scope, x, rate, scope.recording().dropout_noise == PER_ELEMENT, 1);
}

Value HeadDropout(const Scope& scope, Value value, double rate, int64_t head_size) {
  return DropGroups(scope, value, rate, true, head_size);
}

Value ResidualStream::Norm(const Scope& scope, const std::string& name) {
  Recording& recording = scope.recording();
  const int64_t width = scope.TypeOf(pending_).shape[-1];
  const Value scale = scope.Parameter(name, {width}, {"embed"}, Initializer::Constant(1));
  const double rate = recording.training ? dropout_ : 0.0;
  const std::vector<Value> outputs =
      scope.program().Record("add_norm",
                             {{"epsilon", epsilon_},
                              {"rate", rate},
                              {"site", rate > 0 ? recording.next_dropout_site++ : int64_t{0}},
                              {"per_element", recording.dropout_noise == PER_ELEMENT}},
                             {sum_, pending_, scale, rate > 0 ? recording.dropout_keys : Value{}});
  sum_ = outputs[0];
  pending_ = {};
  return outputs[1];
}

Value FeedForward(const Scope& scope, Value x, const FeedForwardConfig& config, double dropout) {
  const double in_deviation = 1 / std::sqrt(static_cast<double>(scope.TypeOf(x).shape[-1]));
  const double out_deviation = 1 / std::sqrt(static_cast<double>(config.width()));
  const auto initializer = [&](double deviation) {
    return config.initialization() == FeedForwardConfig::NORMAL
               ? Initializer::Normal(deviation)
               : Initializer::TruncatedNormal(deviation);
  };
  const LinearSpec wide{config.width(), {"embed", "mlp"}, initializer(in_deviation)};
  Value hidden;
  if (config.activation() == FeedForwardConfig::GATED_GELU) {
    hidden = scope.One("gated_gelu", {},
                       {Linear(scope, "input", x, wide), Linear(scope, "gate", x, wide)});
  } else {
    hidden = LinearRelu(scope, "input", x, wide);
  }
  hidden = Dropout(scope, hidden, dropout);
  return Linear(scope, "output", hidden,
                {scope.TypeOf(x).shape[-1], {"mlp", "embed"}, initializer(out_deviation)});
}

}  // namespace syntra
