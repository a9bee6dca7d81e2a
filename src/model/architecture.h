// SPDX-License-Identifier: Apache-2.0
// Architectures: which stacks a model has, and how they read batches and decode. An architecture is
// a file of its own and a line in architectures.def.
#pragma once

#include <string>
#include <vector>

#include "data/row_layout.h"
#include "mixers/mixer.h"
#include "model/layers.h"

namespace syntra {

class Model;

struct BatchShape {
  int64_t rows = 0;           // B
  int64_t input_length = 0;   // S; 0 where there is no encoder
  int64_t target_length = 0;  // T

  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

// Sequences that are decoded side by side.
struct DecodeShape {
  int64_t inputs = 0;          // read together
  int64_t rows_per_input = 1;  // prefixes of each: beams or samples
  int64_t input_length = 0;
  int64_t max_length = 0;  // of an output, EOS included
  int64_t together = 0;    // of an input and its output, where they share a row; else 0

  int64_t rows() const { return inputs * rows_per_input; }
  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

// Where input and output share a row: the positions of the row, and the positions that kPrefill
// reads at once.
int64_t RowLength(const DecodeShape& shape);
int64_t PrefillLength(const DecodeShape& shape);

// How the inputs get into the states that steps read.
enum class InputReading {
  kEncoder,  // at once, by an encoder
  kPrefill,  // at once, by the decoder in whose row they stand
  kSteps     // by a step of that decoder for each position, before those of the output
};

// The kind of output that a model gives for an input.
enum class Outputs {
  kTokens,        // text, by tokens of the vocabulary
  kMaskedTokens,  // tokens of the vocabulary, in the places of the input
  kClasses        // one of the classes of ModelConfig.classifier
};

class Architecture {
 public:
  virtual ~Architecture() = default;

  // The stacks, in the order in which they compute.
  virtual std::vector<Side> sides() const = 0;
  bool Has(Side side) const;
  // The objectives that it can be trained with on corpora; none: it can be trained on tasks only.
  virtual std::vector<DataConfig::Objective> objectives() const = 0;
  // Whether it can be trained on tasks.
  virtual bool learns_tasks() const { return true; }
  virtual const RowLayout& layout() const = 0;
  virtual Outputs outputs() const { return Outputs::kTokens; }
  // Fields of ModelConfig that have no meaning in this architecture, by its stacks and outputs.
  // They are refused, and left out where every field is printed.
  std::vector<std::string> foreign_fields() const;

  // Records everything from token ids to the hidden states at the slots of the targets, [B * W, T,
  // D], for W targets of each input. The inputs of the program are tensors of a Batch of the
  // layout; positions only where a mixer reads them.
  virtual Value RecordHidden(const Model& model, const Scope& root, const BatchShape& shape,
                             int64_t targets_per_input, TrainConfig::Recompute recompute) const = 0;

  virtual InputReading input_reading(const Model& model) const = 0;
  // Records what steps read of the inputs; not called with kSteps. Program inputs, i32: with
  // kEncoder, encoder_ids and encoder_segments [inputs, input_length]; with kPrefill, the decoder's
  // tensors of a batch, [rows, PrefillLength]. These hold the slots of an input and the slot of the
  // token that must follow it.
  virtual void RecordInputs(const Model& model, const Scope& root, const DecodeShape& shape,
                            const MixerState& state) const;
  // Records a step of the decoder: hidden states [rows, 1, D]. Program inputs: decoder_ids i32
  // [rows, 1]; start i32 [1], the position; with kEncoder also encoder_segments.
  virtual Value RecordStep(const Model& model, const Scope& root, const DecodeShape& shape,
                           const MixerState& state) const;
};

// Returns the model's architecture. Each value of ModelConfig.architecture has one instance.
const Architecture& ArchitectureOf(const ModelConfig& model);

// "ENCODER_DECODER".
const std::string& NameOf(ModelConfig::Architecture architecture);

// Clears the fields that have no meaning in the model's architecture.
void ClearForeignFields(ModelConfig* model);

bool HasSide(const ModelConfig& model, Side side);
// Whether a decoder attends to an encoder.
bool HasCrossAttention(const ModelConfig& model);
// Throws Error(kConfig) if the model's outputs are not tokens, so that no text has a probability.
void CheckGivesTokens(const ModelConfig& model);
// As CheckGivesTokens, but also throws if no decoder of the model could write tokens one by one.
void CheckWritesText(const ModelConfig& model);

// Lengths of a row of a batch under a configuration.
ExampleLengths RowSlots(const Config& config);

}  // namespace syntra
