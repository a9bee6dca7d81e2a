// SPDX-License-Identifier: Apache-2.0
// The layers that every model uses. Activations are [B, T, D] in the recording's activation type.
#pragma once

#include "nn/scope.h"

namespace syntra {

// x W without bias: [.., in] -> [.., out]; W is the parameter `name` of this scope, [in, out].
struct LinearSpec {
  int64_t out;
  std::vector<std::string> axes;  // of W
  Initializer initializer;
};
Value Linear(const Scope& scope, const std::string& name, Value x, const LinearSpec& spec);

// max(x W, 0).
Value LinearRelu(const Scope& scope, const std::string& name, Value x, const LinearSpec& spec);

// Rows of `table` [V, D] for ids i32 [B, T], in the activation type.
Value Embed(const Scope& scope, Value table, Value ids);

// Dropout with the model's noise option. Records nothing in evaluation or if the rate is 0.
Value Dropout(const Scope& scope, Value x, double rate);

// Dropout of whole heads of a position: `value` is [B, S, H * head_size]. To drop V_j,h is to drop
// the probability of key j for every query, which is T5's attention dropout.
Value HeadDropout(const Scope& scope, Value value, double rate, int64_t head_size);

// The residual stream of a pre-norm stack (T5): a running sum, and the last sublayer's output,
// which is not yet added. Addition, dropout and the next sublayer's RMSNorm are one fused op.
class ResidualStream {
 public:
  // Applies dropout to `embedded`, as it does to the outputs of sublayers.
  ResidualStream(Value embedded, double dropout, double epsilon)
      : pending_(embedded), dropout_(dropout), epsilon_(epsilon) {}

  // The normalised input of the next sublayer. The scale is the parameter `name` of `scope`.
  Value Norm(const Scope& scope, const std::string& name = "norm");
  // Adds a sublayer's output to the stream.
  void Add(Value output) { pending_ = output; }

 private:
  Value sum_, pending_;
  double dropout_, epsilon_;
};

// T5's feed-forward sublayer: W_o relu(W_i x), or W_o (gelu(W_i x) * (W_g x)) (T5 v1.1).
Value FeedForward(const Scope& scope, Value x, const FeedForwardConfig& config, double dropout);

}  // namespace syntra
