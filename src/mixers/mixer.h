// SPDX-License-Identifier: Apache-2.0
// Token mixers: every way in which positions of a sequence exchange information. A mixer records
// forward computation only; gradients come from the ops.
//
// To add one: a message in configs/schema/config.proto's MixerConfig, a file src/mixers/<mixer>.cc,
// one line in mixers.def. The contract test in tests/mixers then sweeps it.
#pragma once

#include <memory>
#include <optional>

#include "nn/scope.h"

namespace syntra {

// What a mixer can do; what it cannot is refused when the configuration is read.
struct MixerTraits {
  bool causal = false;       // can hide later positions from earlier ones
  bool incremental = false;  // can decode one position at a time
  bool wants_relative_bias = false;
  int64_t heads = 0;                  // of the relative bias
  std::optional<int64_t> max_length;  // longest sequence its tables reach
};

// A whole sequence. segments: i32 [B, T], 0 is padding; positions inside segments i32 [B, T],
// absent when rows are not packed.
struct MixerInput {
  Value x;  // [B, T, D], normalised
  Value segments;
  Value positions;
  Value relative_bias;  // of the op relative_bias, f32 [H, 2T - 1]; absent unless wanted
  bool causal = false;
};

// One decoding step at row `start` (i32[1]) of sequences of at most `length` positions.
struct MixerStep {
  Value x;  // [B, 1, D]
  Value start;
  Value relative_bias;  // f32 [H, length]
  int64_t length = 0;
  // Returns the cache tensor [B, length, width] called `name`.
  std::function<Value(const std::string& name, int64_t width)> cache;
};

class TokenMixer {
 public:
  virtual ~TokenMixer() = default;
  virtual MixerTraits traits() const = 0;
  // Both return [B, T, D].
  virtual Value Build(const Scope& scope, const MixerInput& input) const = 0;
  virtual Value BuildStep(const Scope& scope, const MixerStep& step) const = 0;
};

// A configuration that sets no kind is the Transformer's attention.
std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config);

}  // namespace syntra
