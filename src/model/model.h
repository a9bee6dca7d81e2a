// SPDX-License-Identifier: Apache-2.0
// Records a model around any token mixers: the stacks that its architecture has, and the embeddings
// of their inputs and outputs.
#pragma once

#include <map>

#include "model/architecture.h"
#include "model/stack.h"

namespace syntra {

class Model {
 public:
  // Throws Error(kConfig) with the first thing that ValidateModel reports.
  explicit Model(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  const Architecture& architecture() const { return ArchitectureOf(config_); }
  // The stack of a side that the architecture has. A decoder's cross-attention reads the encoder's
  // output as its memory.
  const Stack& stack(Side side) const { return stacks_.at(side); }
  // Whether any stack ponders (Stack::ponders).
  bool ponders() const;

  // The shared embedding [V, D], and rows of it, scaled where the model says so, for ids i32 [B,
  // T].
  Value EmbeddingTable(const Scope& root) const;
  Value Embed(const Scope& root, Value ids) const;

  // Declares what a stack reads of a batch: the program inputs <side>_ids, <side>_segments and,
  // where the stack reads them, <side>_positions and <side>_prefix_ends, i32 [rows, length].
  StackInput ReadBatch(const Scope& root, Side side, int64_t rows, int64_t length) const;
  // Declares what the decoder reads at a step: the program inputs decoder_ids i32 [rows, 1] and
  // start i32 [1].
  StackStep ReadStep(const Scope& root, int64_t rows) const;

  // The matrix of the output layer, [V, D] or [classes, D], and the factor on its logits. If tied
  // (T5 v1.0) they are the embedding and D^-1/2, otherwise (v1.1) a matrix of its own and 1. For
  // scaled embeddings, which start smaller by D^-1/2, the factor is 1, too.
  Value OutputTable(const Scope& root) const;
  double LogitScale() const;
  // The id for which row 0 of the matrix stands: 0 with tokens, 1 with classes, since 0 is padding.
  int64_t FirstTarget() const;

 private:
  double InverseRootOfWidth() const;

  ModelConfig config_;
  std::map<Side, Stack> stacks_;
};

}  // namespace syntra
