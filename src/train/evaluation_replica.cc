// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation_replica.h"

#include <algorithm>

#include "base/digest.h"
#include "kernels/math/loss_statistics.h"

namespace syntra {

EvaluationReplica::EvaluationReplica(std::shared_ptr<const PlannedModel> model, Backend& backend)
    : values_(backend.device(), model->parameters().arena_elements(), "parameters"),
      transients_(backend.device()),
      planned_(std::move(model)),
      backend_(backend) {
  if (backend.KeepsRounded(planned_->activations())) {
    rounded_.emplace(backend, parameters().arena_elements());
  }
}

void EvaluationReplica::SetFactor(Executable& executable, const std::string& name, double value) {
  const float factor = static_cast<float>(value);
  executable.SetInput(name, std::span(&factor, 1));
}

void EvaluationReplica::SetInputs(Executable& executable, const Batch& batch,
                                  double inverse_denominator) {
  SetBatchInputs(executable, batch);
  SetFactor(executable, "inverse_denominator", inverse_denominator);
}

LossSums EvaluationReplica::ReadSums(const Executable& executable, const char* objective) {
  const std::span<float> statistics = executable.Tensor("statistics").As<float>();
  return {.objective = executable.Scalar(objective),
          .negative_log_p = statistics[loss_statistics::kNegativeLogP],
          .z_loss = statistics[loss_statistics::kZLoss],
          .tokens = statistics[loss_statistics::kTokens]};
}

std::span<float> EvaluationReplica::HostValues(const Parameter& parameter) {
  return values_.host().subspan(parameter.offset, parameter.shape.size());
}

void EvaluationReplica::InitializeParameters(uint64_t seed) {
  for (const Parameter& parameter : parameters().all()) {
    Initialize(parameter, seed, HostValues(parameter));
  }
  CommitParameters();
}

void EvaluationReplica::CommitParameters() {
  values_.Send();
  RefreshRounded({0, parameters().arena_elements()});
}

void EvaluationReplica::RefreshRounded(const ElementRange& elements) {
  if (rounded_) rounded_->Refresh(values(elements), elements.begin);
  if (packed_) packed_->Clear();
}

Arenas EvaluationReplica::ParameterArenas() {
  return {.parameters = values_.data(),
          .transients = &transients_,
          .rounded = rounded_ ? rounded_->data() : nullptr};
}

std::vector<HostTensor> EvaluationReplica::ParameterTensors() {
  return HostTensorsIn(values_, planned_->ParameterTensors());
}

uint64_t EvaluationReplica::ParameterDigest() {
  values_.Fetch();
  return ShortDigestOf(std::as_bytes(values_.host()));
}

Executable& EvaluationReplica::Evaluation(const BatchShape& shape) {
  using Entry = decltype(evaluations_)::value_type;
  const auto known = std::ranges::find(evaluations_, shape, &Entry::first);
  if (known != evaluations_.end()) return *known->second;
  auto made =
      std::make_unique<Executable>(planned_->Evaluation(shape), backend_, ParameterArenas());
  return *evaluations_.emplace_back(shape, std::move(made)).second;
}

LossSums EvaluationReplica::Evaluate(const Batch& batch) {
  Executable& executable = Evaluation(ShapeOf(batch));
  SetInputs(executable, batch, 1.0);
  executable.Run();
  return ReadSums(executable, "loss");
}

TrainedModel EvaluationReplica::trained() {
  TrainedModel model = planned_->Trained(ParameterArenas(), backend_);
  model.packed = packed_ ? &*packed_ : nullptr;
  return model;
}

}  // namespace syntra
