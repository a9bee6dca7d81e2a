// SPDX-License-Identifier: Apache-2.0
// Records T5's encoder-decoder (Raffel et al. 2020) around any token mixer: pre-norm sublayers with
// RMSNorm, relative position bias shared by the layers of a stack, dot-product cross-attention.
#pragma once

#include <memory>
#include <string>

#include "mixers/mixer.h"
#include "mixers/relative_bias.h"

namespace syntra {

// What one stack's layers have in common.
struct StackInput {
  Value embedded;   // [B, T, D]
  Value segments;   // i32 [B, T]; 0 is padding
  Value positions;  // i32 [B, T], for mixers that index tables by position in the segment
};

// The encoder's side of cross-attention. The decoder may have B * W rows: W neighbours, which are
// not packed, for each row of the memory.
struct Memory {
  Value hidden;    // [B, S, D]
  Value segments;  // i32 [B, S]
};

class EncoderDecoder {
 public:
  explicit EncoderDecoder(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  const TokenMixer& encoder_mixer() const { return *encoder_mixer_; }
  const TokenMixer& decoder_mixer() const { return *decoder_mixer_; }

  // The shared embedding [V, D], and rows of it for ids i32 [B, T].
  Value EmbeddingTable(const Scope& root) const;
  Value Embed(const Scope& root, Value ids) const;

  // Final hidden states [B, T, D], normalised.
  Value Encode(const Scope& root, const StackInput& input, bool recompute) const;
  Value Decode(const Scope& root, const StackInput& input, const Memory& memory,
               bool recompute) const;

  // Keys and values of every decoder layer's cross-attention: PrepareCross writes them once per
  // source, every DecodeStep reads them. One step may be of W rows for each row of the memory.
  struct StepInput {
    Value ids;    // i32 [B * W, 1]
    Value start;  // i32 [1]: row of the new position
    int64_t length = 0;
    Value memory_segments;  // i32 [B, S]
    MixerState cache;
  };
  void PrepareCross(const Scope& root, Value memory_hidden, const MixerState& cache) const;
  // The hidden states of the new position, [B * W, 1, D], normalised.
  Value DecodeStep(const Scope& root, const StepInput& step) const;

  // The matrix of the output layer [V, D] and the factor on its logits: the embedding and D^-1/2
  // when tied (T5 v1.0), a matrix of its own and 1 otherwise (v1.1).
  Value OutputTable(const Scope& root) const;
  double LogitScale() const;

 private:
  Value RelativeBias(const Scope& stack, const TokenMixer& mixer, const BiasExtent& extent) const;
  ModelConfig config_;
  std::unique_ptr<TokenMixer> encoder_mixer_, decoder_mixer_;
};

}  // namespace syntra
