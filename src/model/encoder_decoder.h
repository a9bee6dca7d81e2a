// SPDX-License-Identifier: Apache-2.0
// Records T5's encoder-decoder (Raffel et al. 2020) around any token mixers: a stack that reads the
// inputs, one that writes the outputs, and the embeddings of both.
#pragma once

#include "model/stack.h"

namespace syntra {

class EncoderDecoder {
 public:
  // Throws Error(kConfig) with the first thing that ValidateModel reports.
  explicit EncoderDecoder(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  // The decoder's cross-attention reads the encoder's output as its memory.
  const Stack& encoder() const { return encoder_; }
  const Stack& decoder() const { return decoder_; }

  // The shared embedding [V, D], and rows of it, scaled where the model says so, for ids i32 [B,
  // T].
  Value EmbeddingTable(const Scope& root) const;
  Value Embed(const Scope& root, Value ids) const;

  // The matrix of the output layer [V, D] and the factor on its logits: the embedding and D^-1/2
  // when tied (T5 v1.0), a matrix of its own and 1 otherwise (v1.1). The factor is 1 as well for
  // scaled embeddings, which start smaller by as much.
  Value OutputTable(const Scope& root) const;
  double LogitScale() const;

 private:
  double InverseRootOfWidth() const;

  ModelConfig config_;
  Stack encoder_, decoder_;
};

}  // namespace syntra
