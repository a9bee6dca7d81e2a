// SPDX-License-Identifier: Apache-2.0
// An encoder or a decoder: its layers one after another, for whole sequences and for steps of
// decoding. Its sublayers add to a residual stream. Absolute positions are added to the embedded
// tokens, or before each step of a recurrence. The layers share a relative position bias (T5,
// Raffel et al. 2020).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mixers/mixer.h"
#include "mixers/relative_bias.h"
#include "model/layers.h"

namespace syntra {

// A batch of whole sequences.
struct StackInput {
  Value embedded;   // [B, T, D]
  Value segments;   // i32 [B, T]; 0 is padding
  Value positions;  // i32 [B, T], below T; absent: those of rows with one example each
  // i32 [B, T], in a decoder whose inputs read each other in both directions: for a position of an
  // input, the row just past that example's inputs; 0 for all others.
  Value prefix_ends;
  Memory memory;  // of a decoder that reads an encoder
  // The states that later decode steps read, if there are any: of T positions out of at most
  // `length`. Empty: no steps follow.
  MixerState state;
  int64_t length = 0;
};

// The input of a decode step: one position of sequences of at most `length` positions.
struct StackStep {
  Value embedded;  // [B, 1, D]
  Value start;     // the position, i32 [1]
  int64_t length = 0;
  Value memory_segments;  // i32 [B, S]; of a decoder that reads an encoder
  MixerState state;
};

class Stack {
 public:
  // The model is valid (ValidateModel).
  Stack(const ModelConfig& model, Side side);

  // Whether the stack needs each position's place in its segment where examples share a row.
  bool reads_positions() const;
  // Whether training adds a ponder loss; its program then has the input InversePositionsName.
  bool ponders() const;
  // Throws Error(kConfig) if some layer cannot decode one position at a time.
  void CheckIsIncremental() const;
  // Whether Build can write the states that steps read, because all mixers can.
  bool prefills() const;

  // Returns the final hidden states [B, T, D]. The values that `recompute` names are not kept for
  // the backward pass. Throws Error(kConfig) if the sequence is too long for a mixer.
  Value Build(const Scope& root, const StackInput& input, TrainConfig::Recompute recompute) const;
  // Writes the values that every step reads of the memory's hidden states, once for each source.
  void Prepare(const Scope& root, Value memory, const MixerState& state) const;
  // [B, 1, D].
  Value BuildStep(const Scope& root, const StackStep& step) const;

 private:
  struct Layer {
    LayerGroup group;
    std::shared_ptr<const TokenMixer> mixer;
    std::string name;     // "layer_03": of its states
    std::string weights;  // of the layer whose parameters it has
    int64_t step = 0;     // of its group: 0, 1, ..

    bool recurs() const { return group.recurrence.has_value(); }
    bool halts() const { return recurs() && group.recurrence->has_halting(); }
    // The loss of a single step would be constant.
    bool ponders() const {
      return halts() && group.repeat > 1 && group.recurrence->halting().loss_weight() > 0;
    }
    bool is_last_step() const { return step == group.repeat - 1; }
  };
  // The input of the loop over the layers.
  struct Start {
    Value embedded;   // [B, T, D]
    Value positions;  // [B or 1, T, D], to be added; absent: none
    Value segments;   // absent in a step of decoding
    TrainConfig::Recompute recompute = TrainConfig::NOTHING;
  };
  // Records one mixer of the layer that keeps its states under `states`.
  using Mix = std::function<Value(const TokenMixer& mixer, const Scope& scope, Value x,
                                  const std::string& states)>;

  // Whether keys may be after their queries.
  bool reads_ahead() const { return side_ == Side::kEncoder || model_.bidirectional_prefix(); }
  // The loop over the layers.
  Value Record(const Scope& stack, const Start& start, const Mix& mix) const;
  Value Bias(const Scope& stack, const BiasExtent& extent) const;
  void CheckLength(int64_t length) const;

  ModelConfig model_;
  Side side_;
  std::vector<Layer> layers_;
  std::unique_ptr<TokenMixer> cross_;  // of a decoder that reads an encoder
};

}  // namespace syntra
