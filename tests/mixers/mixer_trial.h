// SPDX-License-Identifier: Apache-2.0
// A program with a single mixer, differentiated with a random cotangent where gradients are wanted.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mixers/mixer.h"
#include "mixers/relative_bias.h"
#include "program/arena_memory.h"

namespace syntra {

// The model width of all trials, and the longest sequence that their tables allow.
inline constexpr int64_t kTrialWidth = 10, kTrialTable = 9;

struct MixerSetting {
  MixerConfig config;
  bool causal = false;
  int64_t batch = 2, length = 7;
  std::vector<float> x;              // [batch, length, kTrialWidth]; empty: RandomRows
  std::vector<int32_t> segments;     // [batch, length]; empty: all 1
  std::vector<int32_t> prefix_ends;  // [batch, length]; empty: none
  DType activations = DType::kF32;
  bool differentiated = true;
  bool recompute = false;
  std::vector<int32_t> keys;  // of the rows in training, [batch, 2]; empty: it does not train
  // Values by parameter name instead of random ones.
  std::map<std::string, std::vector<float>> values;
};

// Random activations [batch, length, kTrialWidth].
std::vector<float> RandomRows(int64_t batch, int64_t length, const std::string& name = "x");
// Positions inside segments [batch, length].
std::vector<int32_t> PositionsInSegments(const std::vector<int32_t>& segments, int64_t length);
// The values of a parameter in every trial.
std::vector<float> TrialValues(const MixerSetting& setting, const Parameter& parameter);
// The relative bias of a random table; absent if the mixer does not want one.
Value TrialBias(const Scope& scope, const TokenMixer& mixer, const BiasExtent& extent);

class MixerTrial {
 public:
  MixerTrial(const MixerSetting& setting, Backend& backend,
             TransientMemory transients = TransientMemory::kPlain);

  // Clears the gradients and runs the program once.
  void Run();
  std::vector<double> Y() const;  // [batch, length, kTrialWidth]
  // Gradients of sum(y * cotangent) by parameter; the input is the parameter "input:x". The
  // cotangent is zero at padding.
  std::map<std::string, std::vector<double>> Gradients() const;

  const ParameterStore& parameters() const { return parameters_; }
  ArenaMemory& memory() { return *memory_; }
  Executable& executable() { return *executable_; }

 private:
  ParameterStore parameters_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Executable> executable_;
};

// The output of a forward pass on `backend`.
std::vector<double> OutputOf(const MixerSetting& setting, Backend& backend = ReferenceBackend());

// Rows of decoding one position at a time, [batch, length, kTrialWidth]; the first `prefilled` of
// them at once.
std::vector<double> DecodeRows(const MixerSetting& setting, Backend& backend,
                               int64_t prefilled = 0);

// The kinds of state that the steps of decoding keep.
std::set<StateKind> StatesOfSteps(const MixerConfig& config);

}  // namespace syntra
