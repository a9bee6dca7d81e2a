// SPDX-License-Identifier: Apache-2.0
// The layers that every model uses. Activations are [B, T, D] in the recording's activation type.
#pragma once

#include <functional>

#include "nn/scope.h"

namespace syntra {

// x W without bias: [.., in] -> [.., out]; W is the parameter `name` of this scope, [in, out].
Value Linear(const Scope& scope, const std::string& name, Value x, int64_t out,
             const Initializer& initializer);

// max(x W, 0).
Value LinearRelu(const Scope& scope, const std::string& name, Value x, int64_t out,
                 const Initializer& initializer);

// x + b, b being the parameter `name` of this scope, [width of x], zero at first.
Value AddBias(const Scope& scope, const std::string& name, Value x);

// Rows of `table` [V, D] for ids i32 [B, T], in the activation type.
Value Embed(const Scope& scope, Value table, Value ids);

// Dropout with the model's noise option. Records nothing in evaluation or if the rate is 0.
Value Dropout(const Scope& scope, Value x, double rate);

// Dropout of whole heads of a position: `value` is [B, S, H * head_size]; with head_size 1 of each
// element, whatever the model's noise option. To drop V_j,h is to drop the probability of key j for
// every query, which is T5's attention dropout.
Value HeadDropout(const Scope& scope, Value value, double rate, int64_t head_size);

// Random numbers in (0, 1) for the rows of a batch in training, f32 [B, ..].
Value UniformNoise(const Scope& scope, const Shape& shape);

// The residual stream of a stack, to which its sublayers are added. The model says how and where
// vectors are normalised. A norm's scale, and bias, are `norm` and `norm_bias` of the scope.
class ResidualStream {
 public:
  // Applies dropout to `embedded`, as it does to the outputs of sublayers.
  ResidualStream(Value embedded, const ModelConfig& model) : model_(model), pending_(embedded) {}

  // Adds the output of a sublayer, whose parameters are in `scope`, for the present stream.
  void Add(const Scope& scope, const std::function<Value(Value x)>& sublayer);
  // Replaces the stream by a function of it.
  void Change(const Scope& scope, const std::function<Value(Value x)>& change);
  // The output of the stack, whose parameters are in `scope`.
  Value Finish(const Scope& scope);

 private:
  // Adds what is pending, and returns the sum.
  Value Sum(const Scope& scope);
  // As Sum, but normalised.
  Value AddAndNormalise(const Scope& scope);
  // As AddAndNormalise, for RMSNorm: addition, dropout and norm as one fused op.
  Value AddAndRmsNormalise(const Scope& scope, Value scale);

  const ModelConfig& model_;
  Value sum_;      // absent at first
  Value pending_;  // the last output before dropout and addition; absent: it is added
};

// The feed-forward sublayer: W_o f(W_i x), or W_o (gelu(W_i x) * (W_g x)) (T5 v1.1).
Value FeedForward(const Scope& scope, Value x, const FeedForwardConfig& config, double dropout);

}  // namespace syntra
