// SPDX-License-Identifier: Apache-2.0
// Token mixers: the layers in which the positions of a sequence exchange information. A mixer
// records only the forward computation; gradients come from the ops.
//
// To add one: a message in MixerConfig of configs/schema/config.proto, a file
// src/mixers/<mixer>.cc, and a line in mixers.def. The contract test in tests/mixers then covers
// it.
#pragma once

#include <memory>
#include <optional>

#include "nn/scope.h"

namespace syntra {

// What a mixer supports. A configuration that needs more is refused when it is read.
struct MixerTraits {
  bool causal = false;       // can hide later positions from earlier ones
  bool incremental = false;  // can decode one position at a time
  bool wants_relative_bias = false;
  int64_t heads = 0;                  // of the relative bias
  std::optional<int64_t> max_length;  // the longest sequence that its tables allow
};

// The input for whole sequences.
struct MixerInput {
  Value x;              // [B, T, D], normalised
  Value segments;       // i32 [B, T], 0 is padding
  Value positions;      // positions inside segments, i32 [B, T]; absent if rows are not packed
  Value relative_bias;  // from the op relative_bias, f32 [H, 2T - 1]; absent unless wanted
  bool causal = false;
};

// The input of a decode step: one position of sequences of at most `length` positions.
struct MixerStep {
  Value x;              // [B, 1, D]
  Value start;          // the position, i32 [1]
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

// If the configuration sets no kind, this is the Transformer's attention.
std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config);

}  // namespace syntra
