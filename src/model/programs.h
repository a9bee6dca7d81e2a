// SPDX-License-Identifier: Apache-2.0
// The programs of a model: training, evaluation. All share one parameter list.
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

// Inputs of both programs (i32 unless said otherwise):
//   encoder_ids, encoder_segments [B, S]; decoder_ids, decoder_segments, targets [B, T];
//   encoder_positions, decoder_positions where a mixer indexes tables by position in the segment;
//   dropout_keys [B, 2] when training with dropout;
//   inverse_denominator f32 [1].
// Outputs: loss f32 [1]; statistics f32 [3] = (sum of -log p, sum of z-loss terms, target tokens).

// A model's parameters, declared as its programs would.
ParameterStore DeclareParameters(const EncoderDecoder& model);

Program EvaluationProgram(const EncoderDecoder& model, ParameterStore& parameters,
                          DType activations, const BatchShape& shape);

// Adds the gradients of the loss to the gradient arena.
Program TrainingProgram(const EncoderDecoder& model, ParameterStore& parameters, DType activations,
                        const BatchShape& shape, const LossOptions& loss, bool recompute);

}  // namespace syntra
