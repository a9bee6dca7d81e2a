// SPDX-License-Identifier: Apache-2.0
#include "plan/planned_model.h"

#include "checkpoint/layout.h"
#include "decode/session.h"
#include "model/programs.h"

namespace syntra {

DType ActivationType(TrainConfig::Precision precision) {
  return precision == TrainConfig::BF16 ? DType::kBF16 : DType::kF32;
}

PlannedModel::PlannedModel(const ModelConfig& config, DType activations, int ranks)
    : model_(config),
      parameters_(DeclareParameters(model_, ranks)),
      activations_(activations),
      evaluations_([this](const BatchShape& shape) {
        return EvaluationProgram(model_, parameters_, activations_, shape);
      }) {}

std::vector<PlannedTensor> PlannedModel::ParameterTensors() const {
  std::vector<PlannedTensor> tensors;
  for (const Parameter& parameter : parameters_.all()) {
    tensors.push_back({.name = kParametersGroup + parameter.name,
                       .type = {DType::kF32, parameter.shape},
                       .held = {{0, parameter.shape.size()}},
                       .offset = parameter.offset});
  }
  return tensors;
}

TrainedModel PlannedModel::Trained(const Arenas& parameters, Backend& backend) const {
  return {model_,  parameters_,           parameters.parameters, activations_,
          backend, parameters.transients, parameters.rounded};
}

}  // namespace syntra
