// SPDX-License-Identifier: Apache-2.0
// Token mixers: the layers in which the positions of a sequence exchange information. A mixer owns
// its rules, says what it can do, and records the forward computation; gradients come from the ops.
//
// src/mixers/README.md lists the steps to add one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/field_report.h"
#include "nn/scope.h"

namespace syntra {

// The longest sequence that a field of the mixer's message allows.
struct LengthLimit {
  int64_t length = 0;
  std::string field;  // its path inside the mixer's message
  std::string value;  // how it says so: "512", "a * b = 32 * 16 = 512"

  static LengthLimit OfMaxLength(int64_t length) {
    return {length, "max_length", std::to_string(length)};
  }
};

// A vector that a layer holds for every token, and the fields that make it so wide.
struct TokenVector {
  int64_t elements = 0;
  std::vector<std::string> fields;  // paths inside the mixer's message
};

// A number by which the model's width must be divisible, and the field that says so.
struct WidthDivisor {
  int64_t value = 1;
  std::string field;  // its path inside the mixer's message
};

// How examples that share a row affect each other. The program asks only whether they leak; that
// kExact is more than kIndependent is a promise that contract_test checks.
enum class PackedRows {
  kLeaks,        // one could read another, so rows must not be packed
  kIndependent,  // none reads another, but where it lies in the row may count
  kExact,        // each is what it would be in a row of its own
};

// The features that a mixer supports. A configuration that needs more is refused when it is read.
struct MixerTraits {
  bool causal = false;  // can hide later positions from earlier ones
  // Causal, it can let the positions of a prefix read each other in both directions.
  bool bidirectional_prefix = false;
  // Why it cannot decode one position at a time, and what can; empty: it can.
  std::string not_incremental;
  // Build can also write what steps after its sequence read, so that they need not repeat it.
  bool prefills = false;
  PackedRows packed_rows = PackedRows::kLeaks;
  bool reads_positions = false;     // needs each position's place in its segment
  bool sees_order = true;           // without a mask; if not, absolute positions must tell it
  int64_t bias_heads = 0;           // of the relative bias that it adds; 0: it adds none
  std::vector<LengthLimit> limits;  // none: it takes sequences of any length
  std::vector<TokenVector> per_token;
  WidthDivisor width_divisor;
  // Promises that contract_test checks. The program does not read them.
  bool stochastic = false;  // in training draws random numbers, besides those of dropout
};

// The encoder's output, which a cross mixer reads. For each row of the memory there may be W
// neighbouring rows of the decoder, which are then not packed.
struct Memory {
  Value hidden;    // [B, S, D]
  Value segments;  // i32 [B, S]
};

// The kinds of state that last from step to step.
enum class StateKind {
  kPositions,  // [rows, positions, width]: a row for each position so far, after them finite rows
  kRunning,    // [rows, .., width]: all of it, zero at the first step
  kMemory      // [rows of the memory, .., width]: written before the first step
};

// Returns the state called `name`.
using MixerState =
    std::function<Value(const std::string& name, const TensorType& type, StateKind kind)>;

// The input for whole sequences.
struct MixerInput {
  Value x;                 // [B, T, D], normalised
  Value segments;          // i32 [B, T], 0 is padding
  Value positions;         // positions inside segments, i32 [B, T]; absent unless read
  Value relative_bias;     // from the op relative_bias, f32 [H, 2T - 1]; absent unless wanted
  int64_t bias_reach = 0;  // of relative_bias (AttentionOperands)
  bool causal = false;
  // i32 [B, T]: a position of a prefix also reads what is before this row, the prefix's end; 0 for
  // others. Absent: there are no such prefixes.
  Value prefix_ends;
  Memory memory;  // only for cross mixers
  // The states that later decode steps read, if there are any: of T positions out of at most
  // `length`. Empty: no steps follow.
  MixerState state;
  int64_t length = 0;
};

// The input of a decode step: one position of sequences of at most `length` positions.
struct MixerStep {
  Value x;              // [B, 1, D]
  Value start;          // the position, i32 [1]
  Value relative_bias;  // f32 [H, length]
  int64_t length = 0;
  bool bidirectional_prefix = false;  // the sequences may begin with such prefixes
  Value memory_segments;              // i32 [B, S]; only for cross mixers
  MixerState state;
};

// Writes row [B, 1, W] at the step's position into the state `name`, and returns the rows of all
// positions, [B, length, W].
Value Remember(const Scope& scope, const MixerStep& step, const std::string& name, Value row);
// Writes rows [B, T, W] into that state where steps follow the input, else nothing.
void Remember(const Scope& scope, const MixerInput& input, const std::string& name, Value rows);

class TokenMixer {
 public:
  virtual ~TokenMixer() = default;
  virtual MixerTraits traits() const = 0;
  // Reports settings that are fine one by one but not together; `report` is that of the mixer's
  // message. Build may be called only if nothing was reported.
  virtual void Validate(const FieldReport& /*report*/) const {}
  // Returns [B, T, D]. A mixer that prefills also writes what BuildStep reads, where steps follow.
  virtual Value Build(const Scope& scope, const MixerInput& input) const = 0;
  // Writes the values that a cross mixer's steps read of the memory's hidden states, once for all
  // steps.
  virtual void Prepare(const Scope&, Value /*memory*/, const MixerState&) const {}
  // Returns [B, 1, D]. The steps of a sequence, one after another, give the same rows as Build
  // gives at once. Called only for incremental mixers, which are causal.
  virtual Value BuildStep(const Scope& scope, const MixerStep& step) const;
};

// The name of the mixer's kind, "light_conv". A configuration that sets no kind is the
// Transformer's attention.
std::string MixerKind(const MixerConfig& config);
// The message of a mixer whose kind is attention, also where it was not set; null for other kinds.
AttentionConfig* MutableAttention(MixerConfig* config);

std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config);
std::unique_ptr<TokenMixer> MakeCrossMixer(const CrossAttentionConfig& config);

}  // namespace syntra
