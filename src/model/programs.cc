// SPDX-License-Identifier: Apache-2.0
#include "model/programs.h"

#include "program/step_sums.h"

namespace syntra {
namespace {

TensorType Integers(Shape shape) { return {DType::kI32, shape}; }

struct LossValues {
  Value loss, statistics;
};

// Records everything from token ids to the loss.
LossValues RecordLoss(const Model& model, Recording& recording, const BatchShape& shape,
                      const LossOptions& options, TrainConfig::Recompute recompute) {
  ProgramBuilder& program = recording.program;
  const Scope root(recording);
  const Value hidden = model.architecture().RecordHidden(model, root, shape, 1, recompute);
  const std::vector<Value> outputs =
      program.Record("linear_cross_entropy",
                     {{"scale", model.LogitScale()},
                      {"z_loss", options.z_loss},
                      {"label_smoothing", options.label_smoothing},
                      {"first", model.FirstTarget()}},
                     {hidden, model.OutputTable(root),
                      program.Input("targets", Integers({shape.rows, shape.target_length})),
                      program.Input("inverse_denominator", {DType::kF32, {1}})});
  program.Output("statistics", outputs[1]);
  return {outputs[0], outputs[1]};
}

}  // namespace

ParameterStore DeclareParameters(const Model& model, int ranks) {
  ParameterStore parameters;
  parameters.ShareEqually(ranks);
  ProgramBuilder builder;
  Recording recording{.program = builder, .parameters = parameters, .declares = &parameters};
  RecordLoss(model, recording, {1, 1, 1}, {}, TrainConfig::NOTHING);
  return parameters;
}

Program EvaluationProgram(const Model& model, const ParameterStore& parameters, DType activations,
                          const BatchShape& shape) {
  ProgramBuilder builder;
  Recording recording{.program = builder, .parameters = parameters, .activations = activations};
  builder.Output("loss", RecordLoss(model, recording, shape, {}, TrainConfig::NOTHING).loss);
  return std::move(builder).Build();
}

Program ScoringProgram(const Model& model, const ParameterStore& parameters, DType activations,
                       const BatchShape& shape, int64_t targets_per_input) {
  ProgramBuilder builder;
  Recording recording{.program = builder, .parameters = parameters, .activations = activations};
  const Scope root(recording);
  const Value hidden = model.architecture().RecordHidden(model, root, shape, targets_per_input,
                                                         TrainConfig::NOTHING);
  const Shape targets{shape.rows * targets_per_input, shape.target_length};
  builder.Output(
      "log_probabilities",
      root.One("linear_log_probability",
               {{"scale", model.LogitScale()}, {"first", model.FirstTarget()}},
               {hidden, model.OutputTable(root), builder.Input("targets", Integers(targets))}));
  return std::move(builder).Build();
}

std::string WeightsName(size_t attention) { return "weights/" + std::to_string(attention); }

Program WeightsProgram(const Model& model, const ParameterStore& parameters, DType activations,
                       const BatchShape& shape, std::vector<Recording::Weights>* weights) {
  ProgramBuilder builder;
  Recording recording{
      .program = builder, .parameters = parameters, .activations = activations, .weights = weights};
  model.architecture().RecordHidden(model, Scope(recording), shape, 1, TrainConfig::NOTHING);
  for (size_t i = 0; i < weights->size(); ++i) {
    builder.Output(WeightsName(i), (*weights)[i].value);
  }
  return std::move(builder).Build();
}

Program TrainingProgram(const Model& model, const ParameterStore& parameters, DType activations,
                        const BatchShape& shape, const LossOptions& loss,
                        TrainConfig::Recompute recompute, ProgramBuilder::Join join) {
  ProgramBuilder builder(join);
  Recording recording{.program = builder,
                      .parameters = parameters,
                      .activations = activations,
                      .training = true,
                      .dropout_keys = builder.Input("dropout_keys", Integers({shape.rows, 2})),
                      .dropout_noise = model.config().dropout_noise()};
  const LossValues values = RecordLoss(model, recording, shape, loss, recompute);
  std::vector<Value> parts = recording.penalties;
  parts.push_back(values.loss);
  builder.Differentiate(parts);
  const StepSums sums = StepSums::Of(builder, parameters);
  // After the backward half, which computes the loss as well.
  Value objective = values.loss;
  for (const Value penalty : recording.penalties) {
    objective = RecordOne(builder, "add", {}, {objective, penalty});
    builder.AddToStepSum(sums.penalty, penalty);
  }
  builder.Output("loss", objective);
  builder.AddToStepSum(sums.objective, objective);
  builder.AddToStepSum(sums.statistics, values.statistics);
  return std::move(builder).Build();
}

}  // namespace syntra
