// SPDX-License-Identifier: Apache-2.0
// A model, the layout of its parameters in the arena, and the programs that only read them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "core/parameters.h"
#include "core/tensor.h"
#include "model/model.h"
#include "plan/recorded_programs.h"

namespace syntra {

class Backend;
struct Arenas;
struct TrainedModel;

// The type of activations under train.precision.
DType ActivationType(TrainConfig::Precision precision);

// A tensor of a checkpoint, and which part of it a rank holds.
struct PlannedTensor {
  std::string name;                // "parameters/<name>", "optimizer/..."
  TensorType type;                 // of the whole tensor, f32
  std::vector<ElementRange> held;  // the elements that the rank holds, row-major
  int64_t offset = 0;              // where they begin in the rank's arena, one after the other

  bool whole() const { return CountOf(held) == type.shape.size(); }
};

// A planned model never changes; programs are recorded when they are asked for.
class PlannedModel {
 public:
  // `ranks` ranks can share the arenas equally. Throws Error(kConfig) if the model is impossible or
  // too large for 64-bit sizes.
  PlannedModel(const ModelConfig& config, DType activations, int ranks = 1);
  PlannedModel(const PlannedModel&) = delete;
  PlannedModel& operator=(const PlannedModel&) = delete;

  const Model& model() const { return model_; }
  const ParameterStore& parameters() const { return parameters_; }
  DType activations() const { return activations_; }
  // The tensors in the arena of parameters, all of which every rank holds.
  std::vector<PlannedTensor> ParameterTensors() const;
  std::shared_ptr<const Program> Evaluation(const BatchShape& shape) const {
    return evaluations_.Get(shape);
  }
  // The model as decoding and scoring read it. `parameters`: the arenas that hold its parameters;
  // none where only sizes are asked for.
  TrainedModel Trained(const Arenas& parameters, Backend& backend) const;

 private:
  Model model_;
  ParameterStore parameters_;
  DType activations_;
  RecordedPrograms evaluations_;
};

}  // namespace syntra
