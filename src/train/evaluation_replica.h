// SPDX-License-Identifier: Apache-2.0
// A model's parameters in a backend's memory, and everything that is computed from them alone:
// evaluations, decoding, scores. A run trains a Replica (train/replica.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/arena.h"
#include "data/batch.h"
#include "decode/session.h"
#include "kernels/packed_weights.h"
#include "plan/planned_model.h"
#include "program/executable.h"
#include "train/host_tensor.h"
#include "train/rounded_parameters.h"

namespace syntra {

// Sums over a batch; they add over micro-batches and ranks.
struct LossSums {
  double objective = 0;       // what was differentiated
  double negative_log_p = 0;  // over target tokens
  double z_loss = 0;
  double tokens = 0;
  double penalty = 0;  // the part of the objective that is not the loss of the targets
  double PerToken() const { return tokens > 0 ? negative_log_p / tokens : 0; }
};

inline BatchShape ShapeOf(const Batch& batch) {
  return {batch.rows, batch.input_length, batch.target_length};
}

class EvaluationReplica {
 public:
  // The parameters are zeros. The backend must outlive it. Throws Error(kResources) if the memory
  // cannot be had.
  EvaluationReplica(std::shared_ptr<const PlannedModel> model, Backend& backend);
  EvaluationReplica(const EvaluationReplica&) = delete;
  EvaluationReplica& operator=(const EvaluationReplica&) = delete;
  virtual ~EvaluationReplica() = default;

  const Model& model() const { return planned_->model(); }
  const ParameterStore& parameters() const { return planned_->parameters(); }
  Backend& backend() const { return backend_; }
  TensorView values(ElementRange part) const { return values_.Part(part.begin, part.size()); }

  void InitializeParameters(uint64_t seed);
  // The host's copy of every parameter, as a checkpoint has it. Values written there take effect
  // with CommitParameters.
  std::vector<HostTensor> ParameterTensors();
  void CommitParameters();
  // Enqueues the bf16 copies of these parameters (rounded_parameters.h), where there are copies,
  // after somebody else has written to values(). Packed weights are forgotten.
  void RefreshRounded(const ElementRange& elements);
  // The XXH3 digest of the arena; equal for equal parameters.
  uint64_t ParameterDigest();

  LossSums Evaluate(const Batch& batch);
  // The model as decoding and scoring read it; the replica must outlive its users.
  TrainedModel trained();
  // From now on decoding keeps weights packed, which takes as much memory again as the parameters.
  void PackWeights() { packed_.emplace(); }

 protected:
  static void SetInputs(Executable& executable, const Batch& batch, double inverse_denominator);
  static void SetFactor(Executable& executable, const std::string& name, double value);
  // `objective`: the output that holds it.
  static LossSums ReadSums(const Executable& executable, const char* objective);
  std::span<float> HostValues(const Parameter& parameter);
  // The arenas of programs that read parameters.
  Arenas ParameterArenas();

  Arena values_;
  TransientBuffer transients_;  // of all programs whose results are read before another one runs

 private:
  Executable& Evaluation(const BatchShape& shape);

  std::shared_ptr<const PlannedModel> planned_;
  Backend& backend_;
  std::optional<RoundedParameters> rounded_;
  std::optional<PackedWeights> packed_;
  std::vector<std::pair<BatchShape, std::unique_ptr<Executable>>> evaluations_;
};

}  // namespace syntra
