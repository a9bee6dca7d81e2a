// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/math/hyperparameters.h"
#include "model/recurrence.h"

namespace syntra {
namespace {

// The model of a plan, which lives as long as anybody has one of them.
std::shared_ptr<const PlannedModel> ModelOf(const std::shared_ptr<const TrainingPlan>& plan) {
  return {plan, &plan->planned_model()};
}

std::shared_ptr<const Program> ProgramOf(std::shared_ptr<const RecordedUpdate> update) {
  const Program* program = &update->program;
  return {std::move(update), program};
}

// Where the sections of a training program end: before each shared bucket is needed, the forward
// half, then each bucket of the gradients.
std::vector<size_t> SectionEnds(const Program& program, std::vector<size_t> needed,
                                std::span<const GradientBucket> buckets) {
  std::vector<size_t> ends = std::move(needed);
  ends.push_back(program.backward_begin);
  for (const GradientBucket& bucket : buckets) {
    // Nothing writes to the gradients of some buckets.
    ends.push_back(std::max(bucket.ready, program.backward_begin));
  }
  if (buckets.empty()) ends.emplace_back();
  ends.back() = program.instructions.size();
  return ends;
}

bool RedrawsBefore(const Parameter& parameter, int64_t step) {
  return parameter.redraw_every > 0 && step > 0 && step % parameter.redraw_every == 0;
}

}  // namespace

int64_t PositionsOf(const Batch& batch, Side side) {
  const std::vector<int32_t>& segments = batch[std::string(NameOf(side)) + "_segments"];
  return std::ssize(segments) - std::ranges::count(segments, 0);
}

Replica::Replica(std::shared_ptr<const TrainingPlan> plan, int rank)
    : EvaluationReplica(ModelOf(plan), plan->backend()),
      plan_(std::move(plan)),
      rank_(rank),
      gradients_(backend().device(), parameters().gradient_elements(), "gradients"),
      state_(backend().device(), optimizer().state_elements(), "optimizer state"),
      update_(ProgramOf(plan_->Update(rank)), backend(), arenas()) {
  // A section ends where each bucket is needed.
  std::vector<size_t> ends = plan_->Update(rank)->block_sum_ends;
  ends.insert(ends.begin(), 0);
  ends.push_back(update_.program().instructions.size());
  update_.SetSections(ends);
}

Arenas Replica::arenas() {
  Arenas all = ParameterArenas();
  all.gradients = gradients_.data();
  all.state = state_.data();
  return all;
}

bool Replica::Redraws(int64_t step) const {
  return std::ranges::any_of(parameters().all(),
                             [&](const Parameter& p) { return RedrawsBefore(p, step); });
}

void Replica::RedrawParameters(uint64_t seed, int64_t step) {
  values_.Fetch();
  for (const Parameter& parameter : parameters().all()) {
    if (!RedrawsBefore(parameter, step)) continue;
    const RandomKey key = DeriveKey(seed, "redraw", step / parameter.redraw_every, 0);
    Initialize(parameter, uint64_t{key.high} << 32 | key.low, HostValues(parameter));
  }
  CommitParameters();
}

std::vector<HostTensor> Replica::HostTensors() {
  std::vector<HostTensor> tensors = ParameterTensors();
  std::ranges::move(HostTensorsIn(state_, plan_->StateTensors(rank_)), std::back_inserter(tensors));
  return tensors;
}

void Replica::Commit() {
  CommitParameters();
  state_.Send();
}

std::vector<HostTensor> Replica::FetchTensors() {
  values_.Fetch();
  state_.Fetch();
  return HostTensors();
}

void Replica::ReleaseHostTensors() {
  values_.ReleaseHost();
  state_.ReleaseHost();
}

Replica::BoundTraining& Replica::BindTraining(const BatchShape& shape) {
  const auto known = std::ranges::find(trainings_, shape, &BoundTraining::shape);
  if (known != trainings_.end()) return *known;
  const std::shared_ptr<const Program> program = plan_->Training(shape);
  BoundTraining bound{shape, std::make_unique<Executable>(program, backend(), arenas()),
                      plan_->BucketsOf(*program)};
  bound.executable->SetSections(
      SectionEnds(*program, plan_->SharedBucketsNeeded(*program), bound.buckets));
  return trainings_.emplace_back(std::move(bound));
}

void Replica::Differentiate(const Batch& batch, const BatchFacts& facts, Gradients gradients,
                            const Milestones& reached, RunTimes* times) {
  BoundTraining& bound = BindTraining(ShapeOf(batch));
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
  executable.Run(
      gradients, [&](size_t section) { Reach(section, bound, reached); }, times);
}

void Replica::Reach(size_t section, const BoundTraining& bound, const Milestones& reached) const {
  const size_t shared = plan_->shared_buckets().size();
  if (section < shared) {
    if (reached.needs_bucket) reached.needs_bucket();
  } else if (section == shared) {
    if (reached.forward) reached.forward();
  } else if (reached.bucket) {
    const GradientBucket& bucket = bound.buckets.at(section - shared - 1);
    reached.bucket({bucket.begin, bucket.end});
  }
}

void Replica::Update(const UpdateFacts& facts, const UpdateMilestones& reached, RunTimes* times) {
  const std::vector<float> hyper = optimizer().Hyper(facts);
  update_.SetInput("hyper", std::span<const float>(hyper));
  const TensorView block_sums = state_.Part(0, optimizer().block_sums());
  if (reached.squares) block_sums.device->Clear(block_sums.data, block_sums.type.bytes());
  const size_t buckets = plan_->buckets().size();
  const auto after = [&](size_t section) {
    if (section < buckets && reached.needs_sum) reached.needs_sum(section);
    if (section == buckets && reached.squares) reached.squares(block_sums);
  };
  update_.Run(Gradients::kAdd, after, times);
}

UpdateOutcome Replica::Outcome() const {
  const double factor = update_.Tensor("hyper_now").As<float>()[hyper::kGradientScale];
  LossSums sums = ReadSums(update_, "objective");
  sums.penalty = update_.Scalar("penalty");
  return {sums, std::sqrt(update_.Scalar("sum_squares")), !std::isfinite(factor)};
}

}  // namespace syntra
