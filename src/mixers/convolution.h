// SPDX-License-Identifier: Apache-2.0
// The common parts of lightweight and dynamic convolutions (Wu et al. 2019, "Pay Less Attention
// with Lightweight and Dynamic Convolutions"): a gated projection, a convolution over positions of
// each column by itself whose weights are a softmax over its taps, a projection.
#pragma once

#include "mixers/mixer.h"

namespace syntra {

class ConvolutionMixer : public TokenMixer {
 public:
  explicit ConvolutionMixer(const ConvolutionConfig& config) : config_(config) {}

  MixerTraits traits() const override;
  void Validate(const FieldReport& report) const override;
  Value Build(const Scope& scope, const MixerInput& input) const override;
  // Keeps the last kernel_size - 1 inputs of the convolution.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override;

 protected:
  bool is_mesh() const { return config_.form() == ConvolutionConfig::MESH; }
  int64_t taps() const { return config_.kernel_size(); }
  // Filters of `columns` columns.
  int64_t filters(int64_t columns) const { return is_mesh() ? columns : config_.heads(); }

 private:
  // Scores of the taps for x [B, T, C], f32 [filters, taps], or [B, T, filters, taps] where each
  // position has its own.
  virtual Value Scores(const Scope& scope, Value x) const = 0;

  // x W + b, as wide as `out`.
  Value Projected(const Scope& scope, const std::string& name, Value x, int64_t out) const;
  Value Gated(const Scope& scope, Value x) const;
  // The weights of the taps as depthwise_conv takes them: f32 [filters, taps], or [B, T, filters *
  // taps] where positions or examples differ.
  Value Weights(const Scope& scope, Value x) const;
  Value Output(const Scope& scope, Value x) const;

  ConvolutionConfig config_;
};

// x W + b: [.., in] -> [.., out], W being the parameter `name` of the scope, b `name`_bias.
Value Affine(const Scope& scope, const std::string& name, Value x, int64_t out,
             const Initializer& initializer);

// The last `length` positions of what a convolution reads, [B, length, W], with `row` [B, 1, W] as
// the newest; zeros before the first. The state `name` keeps them.
Value Window(const Scope& scope, const MixerStep& step, const std::string& name, Value row,
             int64_t length);

}  // namespace syntra
