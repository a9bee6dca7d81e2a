// SPDX-License-Identifier: Apache-2.0
// The programs of a model: training, evaluation, scoring. All share one parameter list.
#pragma once

#include "model/encoder_decoder.h"

namespace syntra {

struct BatchShape {
  int64_t rows = 0;           // B
  int64_t input_length = 0;   // S
  int64_t target_length = 0;  // T

  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

struct LossOptions {
  double z_loss = 0;
  double label_smoothing = 0;
};

// Inputs of training and evaluation (i32 unless said otherwise):
//   encoder_ids, encoder_segments [B, S]; decoder_ids, decoder_segments, targets [B, T];
//   encoder_positions, decoder_positions where a mixer indexes tables by position in the segment;
//   dropout_keys [B, 2] when training with dropout;
//   inverse_denominator f32 [1].
// Outputs: loss f32 [1]; statistics f32 [3] = (sum of -log p, sum of z-loss terms, target tokens).

// A model's parameters, declared as its programs would.
ParameterStore DeclareParameters(const EncoderDecoder& model);

Program EvaluationProgram(const EncoderDecoder& model, ParameterStore& parameters,
                          DType activations, const BatchShape& shape);

// The log-probabilities of given targets, several for each input, whose encoder pass they share.
// Inputs: those of the encoder for shape.rows rows; those of the decoder for
// shape.rows * targets_per_input, the targets of an input side by side. Slots with a target below 0
// do not count; rows are not packed.
// Output: log_probabilities f32 [rows * targets_per_input, T], 0 in slots that do not count.
Program ScoringProgram(const EncoderDecoder& model, ParameterStore& parameters, DType activations,
                       const BatchShape& shape, int64_t targets_per_input);

// Adds the gradients of the loss to the gradient arena.
Program TrainingProgram(const EncoderDecoder& model, ParameterStore& parameters, DType activations,
                        const BatchShape& shape, const LossOptions& loss, bool recompute);

}  // namespace syntra
