// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "core/thread.h"
#include "kernels/math/hyperparameters.h"
#include "model/recurrence.h"

namespace syntra {
namespace {

void SetFactor(Executable& executable, const std::string& name, double value) {
  const float factor = static_cast<float>(value);
  executable.SetInput(name, std::span(&factor, 1));
}

void SetInputs(Executable& executable, const Batch& batch, double inverse_denominator) {
  for (const auto& [name, values] : batch.tensors()) {
    if (executable.Has(name)) executable.SetInput(name, std::span<const int32_t>(values));
  }
  SetFactor(executable, "inverse_denominator", inverse_denominator);
}

LossSums ReadSums(const Executable& executable, const char* objective) {
  const std::span<float> statistics = executable.Tensor("statistics").As<float>();
  return {executable.Scalar(objective), statistics[0], statistics[1], statistics[2]};
}

}  // namespace

int64_t PositionsOf(const Batch& batch, Side side) {
  const std::vector<int32_t>& segments = batch[std::string(NameOf(side)) + "_segments"];
  return std::ssize(segments) - std::ranges::count(segments, 0);
}

std::vector<TensorRecord> RecordsOf(std::span<const HostTensor> tensors) {
  std::vector<TensorRecord> records;
  for (const HostTensor& tensor : tensors) {
    const float* values = tensor.values;
    const auto add = [&](const TensorType& type, int64_t begin) {
      records.push_back({tensor.name, type, reinterpret_cast<const std::byte*>(values), begin});
      values += type.shape.size();
    };
    if (tensor.whole()) {
      add(tensor.type, 0);
      continue;
    }
    for (const ElementRange& part : tensor.held) add({DType::kF32, {part.size()}}, part.begin);
  }
  return records;
}

void HostTensor::Fill(const std::function<void(TensorView)>& read) const {
  if (held.empty()) return;
  if (whole()) return read({values, type});
  std::vector<float> all(type.shape.size());
  read({all.data(), type});
  float* to = values;
  for (const ElementRange& part : held) {
    to = std::copy(all.begin() + part.begin, all.begin() + part.end, to);
  }
}

Replica::Replica(const TrainingPlan& plan, Backend& backend)
    : plan_(plan),
      model_(plan.model),
      backend_(backend),
      parameters_(DeclareParameters(model_, plan.shards)),
      values_(backend.device(), parameters_.arena_elements(), "parameters"),
      transients_(backend.device()) {}

Replica::Replica(const ModelConfig& model, DType activations, Backend& backend)
    : Replica({.model = model,
               .optimizer = {},
               .activations = activations,
               .loss = {},
               .partition = {}},
              backend) {}

Replica::Replica(const TrainingPlan& plan, int rank, Backend& backend) : Replica(plan, backend) {
  if (plan.shards > 1) {
    shares_ = UpdateShares(parameters_, GrainOf(plan.optimizer), plan.shards, plan.bucket_elements);
    optimizer_ = MakeOptimizer(plan.optimizer, parameters_, RangesOf(shares_, rank));
  } else {
    optimizer_ = MakeOptimizer(plan.optimizer, parameters_);
  }
  gradients_ = Arena(backend.device(), parameters_.gradient_elements(), "gradients");
  state_ = Arena(backend.device(), optimizer_->state_elements(), "optimizer state");
  update_ = std::make_unique<Executable>(optimizer_->UpdateProgram(parameters_), backend, arenas());
  update_->SetSections({optimizer_->own_block_sums_end(), update_->program().instructions.size()});
  checkpoint_elements_ = parameters_.element_count();
  for (const StateTensor& tensor : optimizer_->state()) checkpoint_elements_ += tensor.shape.size();
}

std::span<float> Replica::HostValues(const Parameter& parameter) {
  return values_.host().subspan(parameter.offset, parameter.shape.size());
}

void Replica::InitializeParameters(uint64_t seed) {
  for (const Parameter& parameter : parameters_.all()) {
    Initialize(parameter, seed, HostValues(parameter));
  }
  values_.Send();
}

void Replica::RedrawParameters(uint64_t seed, int64_t step) {
  bool drawn = false;
  for (const Parameter& parameter : parameters_.all()) {
    const int64_t every = parameter.redraw_every;
    if (every == 0 || step == 0 || step % every != 0) continue;
    if (!drawn) values_.Fetch();
    const RandomKey key = DeriveKey(seed, "redraw", step / every, 0);
    Initialize(parameter, uint64_t{key.high} << 32 | key.low, HostValues(parameter));
    drawn = true;
  }
  if (drawn) values_.Send();
}

std::vector<HostTensor> Replica::HostTensors() {
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : parameters_.all()) {
    tensors.push_back({.name = kParametersGroup + parameter.name,
                       .type = {DType::kF32, parameter.shape},
                       .held = {{0, parameter.shape.size()}},
                       .values = HostValues(parameter).data()});
  }
  if (!optimizer_) return tensors;
  for (const StateTensor& tensor : optimizer_->state()) {
    tensors.push_back({.name = tensor.name,
                       .type = {DType::kF32, tensor.shape},
                       .held = tensor.held,
                       .values = state_.host().subspan(tensor.offset).data()});
  }
  return tensors;
}

void Replica::Commit() {
  values_.Send();
  state_.Send();
}

void Replica::CommitParameters() { values_.Send(); }

std::vector<HostTensor> Replica::FetchTensors() {
  values_.Fetch();
  state_.Fetch();
  return HostTensors();
}

Replica::Bound& Replica::FindOrBind(std::vector<Bound>& bound, const BatchShape& shape,
                                    const std::function<Program()>& record) {
  const auto same = [&](const Bound& other) { return other.shape == shape; };
  if (const auto it = std::ranges::find_if(bound, same); it != bound.end()) return *it;
  return bound.emplace_back(
      Bound{shape, std::make_unique<Executable>(record(), backend_, arenas()), {}, false});
}

Replica::Bound& Replica::BindTraining(const BatchShape& shape) {
  Bound& bound = FindOrBind(training_, shape, [&] {
    return TrainingProgram(model_, parameters_, plan_.activations, shape, plan_.loss,
                           plan_.recompute);
  });
  if (!bound.cut) CutIntoSections(bound);
  return bound;
}

void Replica::CutIntoSections(Bound& bound) const {
  const Program& program = bound.executable->program();
  if (plan_.bucket_elements > 0) {
    bound.buckets = GradientBuckets(program, parameters_, plan_.bucket_elements);
  }
  std::vector<size_t> ends{program.backward_begin};
  for (const GradientBucket& bucket : bound.buckets) {
    // Nothing writes to the gradients of some buckets.
    ends.push_back(std::max(bucket.ready, program.backward_begin));
  }
  if (bound.buckets.empty()) ends.emplace_back();
  ends.back() = program.instructions.size();
  bound.executable->SetSections(ends);
  bound.cut = true;
}

Executable& Replica::Training(const BatchShape& shape) { return *BindTraining(shape).executable; }

Executable& Replica::Evaluation(const BatchShape& shape) {
  return *FindOrBind(evaluation_, shape, [&] {
            return EvaluationProgram(model_, parameters_, plan_.activations, shape);
          }).executable;
}

void Replica::Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                            const Milestones& reached, RunTimes* times) {
  Bound& bound = BindTraining(ShapeOf(batch));
  Executable& executable = *bound.executable;
  SetInputs(executable, batch, facts.inverse_denominator);
  for (const auto& [side, inverse] : facts.inverse_positions) {
    SetFactor(executable, InversePositionsName(side), inverse);
  }
  std::vector<int32_t> keys(2 * batch.rows);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const RandomKey key = DeriveKey(facts.seed, "dropout", facts.step, batch.first_example + row);
    keys[2 * row] = static_cast<int32_t>(key.low);
    keys[2 * row + 1] = static_cast<int32_t>(key.high);
  }
  executable.SetInput("dropout_keys", std::span<const int32_t>(keys));
  const auto after = [&](size_t section) {
    if (section == 0) {
      if (reached.forward) reached.forward();
    } else if (reached.piece) {
      const GradientBucket& bucket = bound.buckets.at(section - 1);
      reached.piece({bucket.begin, bucket.end});
    }
  };
  executable.Run(gradients, after, times);
}

LossSums Replica::Evaluate(const Batch& batch) {
  Executable& executable = Evaluation(ShapeOf(batch));
  SetInputs(executable, batch, 1.0);
  executable.Run();
  return ReadSums(executable, "loss");
}

void Replica::Update(const UpdateFacts& facts, const std::function<void(TensorView)>& exchange,
                     RunTimes* times) {
  const std::vector<float> hyper = optimizer_->Hyper(facts);
  update_->SetInput("hyper", std::span<const float>(hyper));
  const TensorView block_sums = state_.Part(0, optimizer_->block_sums());
  if (exchange) block_sums.device->Clear(block_sums.data, block_sums.type.bytes());
  const auto after = [&](size_t section) {
    if (section == 0 && exchange) exchange(block_sums);
  };
  update_->Run(Gradients::kAdd, after, times);
}

UpdateOutcome Replica::Outcome() const {
  const double factor = update_->Tensor("hyper_now").As<float>()[hyper::kGradientScale];
  LossSums sums = ReadSums(*update_, "objective");
  sums.penalty = update_->Scalar("penalty");
  return {sums, std::sqrt(update_->Scalar("sum_squares")), !std::isfinite(factor)};
}

void Replica::ForgetState() { state_.Clear(); }

uint64_t Replica::ParameterDigest() {
  values_.Fetch();
  const std::span<float> values = values_.host();
  return XXH3_64bits(values.data(), values.size_bytes());
}

}  // namespace syntra
