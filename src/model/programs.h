// SPDX-License-Identifier: Apache-2.0
// The programs of a model: training, evaluation, scoring. All share one parameter list,
// which DeclareParameters makes.
#pragma once

#include "model/model.h"

namespace syntra {

struct LossOptions {
  double z_loss = 0;
  double label_smoothing = 0;
};

// Inputs of training and evaluation (i32 unless said otherwise):
//   the tensors of a batch of the architecture's layout (data/batch.h); positions only where a
//   mixer indexes tables by position in the segment; dropout_keys [B, 2] when training with
//   dropout; inverse_denominator f32 [1]; where a stack ponders, in training its factor
//   InversePositionsName f32 [1].
// Outputs: loss f32 [1], in training with all that is added to it; statistics f32 [3], by slot
// (kernels/math/loss_statistics.h).

// Declares a model's parameters as its programs would, in arenas that `ranks` ranks can share
// equally.
ParameterStore DeclareParameters(const Model& model, int ranks = 1);

Program EvaluationProgram(const Model& model, const ParameterStore& parameters, DType activations,
                          const BatchShape& shape);

// The log-probabilities of given targets, several for each input, whose encoder pass they share
// where there is an encoder. Inputs: the tensors of a batch with `targets_per_input` targets for
// each input. Slots whose target is below the id of the first row do not count; rows are not
// packed. Output: log_probabilities f32 [rows * targets_per_input, T], 0 in slots that do not
// count.
Program ScoringProgram(const Model& model, const ParameterStore& parameters, DType activations,
                       const BatchShape& shape, int64_t targets_per_input);

// The weights with which the attentions of the layers read positions. Inputs: the tensors of a
// batch. Outputs: WeightsName(i) f32 [B, H, T, S] of attention i, which is added to `weights`.
Program WeightsProgram(const Model& model, const ParameterStore& parameters, DType activations,
                       const BatchShape& shape, std::vector<Recording::Weights>* weights);
std::string WeightsName(size_t attention);

// Adds the gradients of the loss to the gradient arena. `join`: across layers, keys and values of
// the cross-attention of all are one product.
Program TrainingProgram(const Model& model, const ParameterStore& parameters, DType activations,
                        const BatchShape& shape, const LossOptions& loss,
                        TrainConfig::Recompute recompute,
                        ProgramBuilder::Join join = ProgramBuilder::Join::kWithinRegions);

}  // namespace syntra
