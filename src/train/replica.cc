#include "train/replica.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.h"
#include "core/thread.h"

namespace syntra {
namespace {

BatchShape ShapeOf(const Batch& batch) {
  return {batch.rows, batch.input_length, batch.target_length};
}

void SetInputs(Executable& executable, const Batch& batch, double inverse_denominator) {
  const auto set = [&](const char* name, const std::vector<int32_t>& values) {
    if (executable.Has(name)) executable.SetInput(name, std::span<const int32_t>(values));
  };
  set("encoder_ids", batch.encoder_ids);
  set("encoder_segments", batch.encoder_segments);
  set("encoder_positions", batch.encoder_positions);
  set("decoder_ids", batch.decoder_ids);
  set("decoder_segments", batch.decoder_segments);
  set("decoder_positions", batch.decoder_positions);
  set("targets", batch.targets);
  const float factor = static_cast<float>(inverse_denominator);
  executable.SetInput("inverse_denominator", std::span(&factor, 1));
}

LossSums ReadSums(const Executable& executable) {
  const std::span<float> statistics = executable.Tensor("statistics").As<float>();
  return {executable.Scalar("loss"), statistics[0], statistics[1], statistics[2]};
}

}  // namespace

DType ActivationType(TrainConfig::Precision precision) {
  return precision == TrainConfig::BF16 ? DType::kBF16 : DType::kF32;
}

LossSums LossSums::operator+(const LossSums& other) const {
  return {objective + other.objective, negative_log_p + other.negative_log_p, z_loss + other.z_loss,
          tokens + other.tokens};
}

Replica::Replica(const ModelConfig& model, const OptimizerConfig* optimizer, DType activations)
    : model_(model), activations_(activations), parameters_(DeclareParameters(model_)) {
  const size_t bytes = parameters_.arena_elements() * sizeof(float);
  values_ = Buffer(bytes, "parameters");
  if (!optimizer) return;
  optimizer_ = MakeOptimizer(*optimizer, parameters_);
  gradients_ = Buffer(bytes, "gradients");
  state_ = Buffer(optimizer_->state_elements() * sizeof(float), "optimizer state");
  norm_ = std::make_unique<Executable>(GradientNormProgram(parameters_), Backend::kCpu, arenas());
  update_ =
      std::make_unique<Executable>(optimizer_->UpdateProgram(parameters_), Backend::kCpu, arenas());
}

std::span<float> Replica::Values(const Parameter& parameter) const {
  return {reinterpret_cast<float*>(values_.data()) + parameter.offset,
          static_cast<size_t>(parameter.shape.size())};
}

void Replica::InitializeParameters(uint64_t seed) {
  for (const Parameter& parameter : parameters_.all()) {
    Initialize(parameter, seed, Values(parameter));
  }
}

std::vector<TensorRecord> Replica::Tensors() const {
  std::vector<TensorRecord> records;
  for (const Parameter& parameter : parameters_.all()) {
    records.push_back({"parameters/" + parameter.name,
                       {DType::kF32, parameter.shape},
                       std::as_bytes(Values(parameter)).data()});
  }
  if (!optimizer_) return records;
  for (const StateTensor& tensor : optimizer_->state()) {
    records.push_back(
        {tensor.name, {DType::kF32, tensor.shape}, state_.data() + tensor.offset * sizeof(float)});
  }
  return records;
}

void Replica::SetLoss(const LossOptions& loss, bool recompute) {
  SYNTRA_CHECK(training_.empty(), "the loss is fixed once a training program exists");
  loss_ = loss;
  recompute_ = recompute;
}

Executable& Replica::FindOrBind(std::vector<Bound>& bound, const BatchShape& shape,
                                const std::function<Program()>& record) {
  const auto same = [&](const Bound& other) { return other.shape == shape; };
  if (const auto it = std::ranges::find_if(bound, same); it != bound.end()) return *it->executable;
  bound.push_back({shape, std::make_unique<Executable>(record(), Backend::kCpu, arenas())});
  return *bound.back().executable;
}

Executable& Replica::Training(const BatchShape& shape) {
  return FindOrBind(training_, shape, [&] {
    return TrainingProgram(model_, parameters_, activations_, shape, loss_, recompute_);
  });
}

Executable& Replica::Evaluation(const BatchShape& shape) {
  return FindOrBind(evaluation_, shape,
                    [&] { return EvaluationProgram(model_, parameters_, activations_, shape); });
}

LossSums Replica::Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients) {
  Executable& executable = Training(ShapeOf(batch));
  SetInputs(executable, batch, facts.inverse_denominator);
  const std::span<int32_t> keys = executable.Tensor("dropout_keys").As<int32_t>();
  for (int64_t row = 0; row < batch.rows; ++row) {
    const RandomKey key = DeriveKey(facts.seed, "dropout", facts.step, batch.first_example + row);
    keys[2 * row] = static_cast<int32_t>(key.low);
    keys[2 * row + 1] = static_cast<int32_t>(key.high);
  }
  executable.Run(gradients);
  return ReadSums(executable);
}

LossSums Replica::Evaluate(const Batch& batch) {
  Executable& executable = Evaluation(ShapeOf(batch));
  SetInputs(executable, batch, 1.0);
  executable.Run();
  return ReadSums(executable);
}

std::unique_ptr<GreedyDecoder> Replica::MakeDecoder(const DecodeShape& shape) {
  return std::make_unique<GreedyDecoder>(model_, parameters_, values_.data(), activations_, shape);
}

TensorView Replica::GradientArena() const {
  return {gradients_.data(), {DType::kF32, {parameters_.arena_elements()}}};
}

double Replica::GradientNorm() {
  norm_->Run();
  return std::sqrt(norm_->Scalar("sum_squares"));
}

void Replica::Update(const UpdateFacts& facts) {
  const std::vector<float> hyper = optimizer_->Hyper(facts);
  update_->SetInput("hyper", std::span<const float>(hyper));
  update_->Run();
}

void Replica::ForgetState() {
  if (state_.size() > 0) std::memset(state_.data(), 0, state_.size());
}

uint64_t Replica::ParameterDigest() const { return XXH3_64bits(values_.data(), values_.size()); }

}  // namespace syntra
