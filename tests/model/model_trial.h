// SPDX-License-Identifier: Apache-2.0
// A small model with a batch and an executable program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/programs.h"
#include "program/arena_memory.h"

namespace syntra {

struct TrialBatch {
  BatchShape shape;
  std::vector<int32_t> encoder_ids, encoder_segments, decoder_ids, decoder_segments, targets;
  std::vector<int32_t> prefix_ends;
  std::vector<int32_t> dropout_keys;
};

// A batch of full rows of random ids >= 3. The decoder's ids are the targets shifted right; none
// are inputs.
TrialBatch RandomBatch(const BatchShape& shape, int64_t vocabulary);
// The batch as a model reads it: of classes one target for each row, of masked tokens one for each
// input.
TrialBatch FittedBatch(const ModelConfig& config, TrialBatch batch);
// Makes the first tokens of each row its inputs, for models in which they read each other.
void SetPrefixes(TrialBatch* batch, int64_t inputs);

// A tiny T5 with `mixer` as its self-attention, e.g. "attention { term { random {} } }", and `more`
// ModelConfig fields. Where the mixer is not causal, the decoder has dot-product attention.
ModelConfig TinyModel(const std::string& mixer = "", const std::string& more = "");

// A tiny decoder-only model likewise; the mixer is causal.
ModelConfig TinyDecoder(const std::string& mixer = "", const std::string& more = "");

// A tiny encoder with a classification head of 31 classes, and more fields of ClassifierConfig: the
// ids of a vocabulary of 32 are classes as well.
ModelConfig TinyEncoder(const std::string& head);

// A tiny encoder that tells masked tokens.
ModelConfig TinyMaskedLm();

// The tiny T5, or another model, with ModelConfig fields laid over it, e.g. "encoder { layers {
// repeat: 3 } }".
ModelConfig ListedModel(const std::string& fields, ModelConfig config = TinyModel());

// The names and configurations of the mixers that model and decoding tests use.
const std::map<std::string, std::string>& TrialMixers();

// The names and ModelConfig fields (for ListedModel) of bodies other than T5's: norms, positions,
// feed-forward networks.
const std::map<std::string, std::string>& TrialBodies();

// The tiny T5 with each trial mixer, the tiny models of each trial body and of each other
// architecture.
std::map<std::string, ModelConfig> TrialModels();

struct ModelSetting {
  ModelConfig config = TinyModel();
  LossOptions loss;
  DType activations = DType::kF32;
  TrainConfig::Recompute recompute = TrainConfig::NOTHING;
  ProgramBuilder::Join join = ProgramBuilder::Join::kWithinRegions;
  double inverse_denominator = 0.1;
};

// The tiny T5 with dropout everywhere.
ModelSetting DropoutSetting(DropoutNoise noise);

class ModelTrial {
 public:
  ModelTrial(const ModelSetting& setting, const TrialBatch& batch, Backend& backend,
             TransientMemory transients = TransientMemory::kPlain);

  // Clears the gradients, runs the program once and returns the loss.
  double Run();
  std::map<std::string, std::vector<double>> Gradients() const;

  const Model& model() const { return model_; }
  ParameterStore& parameters() { return parameters_; }
  ArenaMemory& memory() { return *memory_; }
  Executable& executable() { return *executable_; }

 private:
  Model model_;
  ParameterStore parameters_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Executable> executable_;
};

// Fills the parameters with their initial values. Projection matrices are multiplied by `factor`.
void FillParameters(const ParameterStore& parameters, ArenaMemory& memory, double factor = 1);

// Sets the factor of a stack's ponder loss, where the program has one.
void SetInversePositions(Side side, const std::vector<int32_t>& segments, Executable& executable);

// Sets the program's inputs from the batch.
void SetBatch(const TrialBatch& batch, Executable& executable);

// A program with the output "logits" [B, T, V].
Program LogitsProgram(const Model& model, ParameterStore& parameters, DType activations,
                      const BatchShape& shape);

}  // namespace syntra
