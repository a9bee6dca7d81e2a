// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "optim/schedule.h"
#include "run/failpoint.h"

namespace syntra {
namespace {

// The facts that each rank shares with the others in a step: slots of a vector, since all small
// numbers of a step travel in one collective.
enum RankSlot : size_t { kStop, kSave, kReadySeconds, kBatchSlots, kFlops, kRankSlots };

// For tests: writes to the first element.
void Spoil(const TensorView& part, float value) {
  part.device->CopyIn(part.data, &value, sizeof(value));
}

}  // namespace

double MeasurePeak(Communicator& ranks, Backend& backend, DType type) {
  ranks.Barrier();
  double peak = backend.PeakFlops(type);
  ranks.AllReduceSum(std::span(&peak, 1));  // with NaN it is NaN
  return peak;
}

StepRunner::StepRunner(Replica& replica, Communicator& ranks)
    : replica_(replica),
      plan_(replica.plan()),
      config_(plan_.config()),
      ranks_(ranks),
      partition_(plan_.partition()),
      clock_(replica.backend().device()) {
  if (config_.train().reduction() == TrainConfig::EXACT) {
    tree_.emplace(partition_.micro_batches_per_rank(), replica.parameters().gradient_elements(),
                  replica.backend());
  }
  exposed_.push_back(ranks.Expose(replica.gradients().view()));
  if (!plan_.shared_buckets().empty()) {
    exposed_.push_back(ranks.Expose(replica.values({0, replica.parameters().arena_elements()})));
  }
}

std::vector<Batch> StepRunner::Fetch(const TrainingData& data, int64_t batch) const {
  std::vector<Batch> batches;
  const int64_t rows = partition_.micro_batch_rows;
  std::vector<int64_t> numbers(partition_.micro_batches_per_rank());
  std::iota(numbers.begin(), numbers.end(), ranks_.rank() * std::ssize(numbers));
  if (data.Trims()) numbers = partition_.MixedMicroBatches(ranks_.rank());
  for (const int64_t number : numbers) {
    batches.push_back(data.Get(batch, partition_.batch_size, number * rows, rows));
  }
  return batches;
}

double StepRunner::Flops(std::span<const Batch> batches) const {
  double flops = 0;
  for (const Batch& batch : batches) {
    flops += replica_.Training(ShapeOf(batch)).program().flops;
  }
  return flops;
}

double StepRunner::InverseDenominator(const std::vector<Batch>& batches) {
  if (config_.train().loss_denominator() == TrainConfig::TARGET_SLOTS) {
    // However short the batch's rows are.
    return 1.0 / static_cast<double>(partition_.batch_size * plan_.shape().target_length);
  }
  double tokens = 0;
  for (const Batch& batch : batches) tokens += static_cast<double>(batch.target_tokens);
  return InverseSum(tokens);
}

double StepRunner::InverseSum(double count) {
  ranks_.AllReduceSum(std::span(&count, 1));
  return 1.0 / std::max(1.0, count);
}

BatchFacts StepRunner::FactsOf(const std::vector<Batch>& batches, int64_t step) {
  BatchFacts facts{.seed = config_.train().seed(),
                   .step = step,
                   .inverse_denominator = InverseDenominator(batches),
                   .inverse_positions = {}};
  const Model& model = replica_.model();
  for (const Side side : model.architecture().sides()) {
    if (!model.stack(side).ponders()) continue;
    double positions = 0;
    for (const Batch& batch : batches) positions += static_cast<double>(PositionsOf(batch, side));
    facts.inverse_positions[side] = InverseSum(positions);
  }
  return facts;
}

void StepRunner::Differentiate(const std::vector<Batch>& batches, const BatchFacts& facts) {
  for (size_t i = 0; i < batches.size(); ++i) {
    // The first one overwrites the gradients of the step before. A tree adds them up itself, so
    // each of its leaves does.
    const bool replaces = i == 0 || tree_;
    const Gradients gradients = replaces ? Gradients::kReplace : Gradients::kAdd;
    Milestones reached{.needs_bucket = [&] { FinishGather(); },
                       .forward = [&] { clock_.End(StepPhase::kForward); },
                       .bucket = {}};
    if (in_buckets() && i + 1 == batches.size()) {
      reached.bucket = [&](ElementRange bucket) { StartSum(bucket); };
    }
    replica_.Differentiate(batches[i], facts, gradients, reached, NextRun());
    if (tree_) tree_->Add(replica_.gradients().view());
    clock_.End(StepPhase::kBackward);
  }
}

// `bucket` is one of plan_.buckets(), the step's sums that follow the gradients in the arena, or
// the whole arena with both. Where ranks share the parameters, a rank gets the sum of only those
// gradients with which it updates (reduce-scatter); the step's sums are needed by all (all-reduce).
// Shared buckets are taken from the beginning of `bucket`, so those in it must be neighbours, in
// ascending order, and the first must begin where it does.
void StepRunner::StartSum(ElementRange bucket) {
  if (trace_ && ranks_.size() > 1) trace_->StartsSum(bucket.size());
  Arena& gradients = replica_.gradients();
  if (spoils_) {
    Spoil(gradients.Part(bucket.begin, bucket.size()), std::numeric_limits<float>::quiet_NaN());
  }
  for (const auto& [elements, shares] : plan_.shared_buckets()) {
    if (bucket.And(elements).size() == 0) continue;
    SYNTRA_CHECK(elements.begin == bucket.begin && elements.end <= bucket.end,
                 "elements [{}, {}) are shared, but of [{}, {}) the sum was started",
                 elements.begin, elements.end, bucket.begin, bucket.end);
    ranks_.StartReduceScatter(gradients.Part(elements.begin, elements.size()), shares);
    sums_.push_back(elements);
    bucket.begin = elements.end;
  }
  if (bucket.size() == 0) return;
  ranks_.StartAllReduceSum(gradients.Part(bucket.begin, bucket.size()));
  sums_.push_back(bucket);
}

void StepRunner::FinishSum() {
  sums_.pop_front();
  ranks_.Finish();
}

void StepRunner::Update(const UpdateFacts& facts) {
  const std::vector<ElementRange>& buckets = plan_.buckets();
  UpdateMilestones reached;
  reached.needs_sum = [&](size_t bucket) {
    const auto is_of_bucket = [&](const ElementRange& sum) {
      return sum.And(buckets[bucket]).size() > 0;
    };
    const bool is_last = bucket + 1 == buckets.size();
    while (is_last ? !sums_.empty() : std::ranges::any_of(sums_, is_of_bucket)) FinishSum();
    if (is_last) clock_.End(StepPhase::kReduce);
  };
  // A block's sum is one rank's alone. Adding zeros rounds nothing, in whatever order.
  if (plan_.shards() > 1) {
    reached.squares = [&](TensorView block_sums) { ranks_.AllReduceSum(block_sums); };
  }
  replica_.Update(facts, reached, NextRun());
  // In the order in which the next forward half reads them.
  const std::vector<SharedBucket>& shared = plan_.shared_buckets();
  for (auto bucket = shared.rbegin(); bucket != shared.rend(); ++bucket) {
    ranks_.StartAllGather(replica_.values(bucket->elements), bucket->shares);
    ++gathers_;
  }
}

// The oldest one, if there is one.
void StepRunner::FinishGather() {
  if (gathers_ == 0) return;
  --gathers_;
  ranks_.Finish();
  replica_.RefreshRounded(plan_.shared_buckets()[gathers_].elements);
}

void StepRunner::FinishGathers() {
  while (gathers_ > 0) FinishGather();
}

// On a GPU everything up to Outcome only enqueues work, so that the GPU never waits for the host.
StepResult StepRunner::Run(const std::vector<Batch>& batches, int64_t step, const RankNote& note,
                           Trace* trace) {
  const BatchFacts facts = FactsOf(batches, step);
  StepResult result;
  result.learning_rate =
      LearningRate(config_.optimizer().schedule(), step, config_.train().steps());
  result.flops = Flops(batches);
  for (const Batch& batch : batches) {
    result.slots += static_cast<double>(batch.rows * (batch.input_length + batch.target_length));
  }
  const auto begin = Clock::now();
  if (replica_.Redraws(step)) {
    FinishGathers();
    replica_.RedrawParameters(config_.train().seed(), step);
  }
  if (At("wrong_parameter", step)) SpoilParameter();
  const int64_t number = batches.front().first_example / partition_.batch_size;
  spoils_ = At("gradient_nan", step) || At("nan_batch", number);
  if (trace) {
    trace_.emplace(*trace, replica_.backend().device(), clock_, config_.train().profile().ops());
  }
  clock_.Start();
  Differentiate(batches, facts);
  if (At("slow_rank", step)) std::this_thread::sleep_for(std::chrono::milliseconds(100));

  const auto ready = Clock::now();
  if (!in_buckets()) StartSum({0, replica_.gradients().elements()});
  result.sync_seconds = SecondsSince(ready);

  Update({.step = optimizer_steps_before_ + step, .rate = result.learning_rate});
  clock_.End(StepPhase::kOptimizer);
  static_cast<UpdateOutcome&>(result) = replica_.Outcome();
  // After the wait for the device: a communicator that lost a rank says so here, before anybody
  // believes what it summed.
  const auto done = Clock::now();
  result.phases = clock_.Seconds();
  const auto phase = [&](StepPhase each) -> double& {
    return result.phases[static_cast<size_t>(each)];
  };
  double compute_seconds = std::chrono::duration<double>(ready - begin).count();
  if (!replica_.backend().device().is_host()) {  // so far the host has only enqueued
    compute_seconds = phase(StepPhase::kForward) + phase(StepPhase::kBackward);
    result.sync_seconds = phase(StepPhase::kReduce);
  }
  Share(note, compute_seconds, &result);
  result.sync_seconds += SecondsSince(done);
  if (trace_) trace_->Finish();
  trace_.reset();
  phase(StepPhase::kData) = note.data_seconds;
  // All ranks hold the same sums, so all decide alike.
  if (result.skipped) {
    Log().warn("step {} skipped: the {} is not finite{}", step + 1,
               std::isfinite(result.sums.objective) ? "gradient" : "loss", FirstBadGradient());
  }
  return result;
}

void StepRunner::Share(const RankNote& note, double compute_seconds, StepResult* result) {
  std::array<double, kRankSlots> mine;
  mine[kStop] = note.stop;
  mine[kSave] = note.save;
  mine[kReadySeconds] = note.data_seconds + compute_seconds;
  mine[kBatchSlots] = result->slots;
  mine[kFlops] = result->flops;
  const std::vector<double> all = ranks_.AllGather(std::span<const double>(mine));
  result->slots = result->flops = 0;
  for (size_t rank = 0; rank < all.size() / kRankSlots; ++rank) {
    const auto told = std::span(all).subspan(rank * kRankSlots, kRankSlots);
    result->requests_to_stop += static_cast<int>(told[kStop]);
    result->requests_to_save += static_cast<int>(told[kSave]);
    result->rank_seconds.push_back(told[kReadySeconds]);
    result->slots += told[kBatchSlots];
    result->flops += told[kFlops];
  }
}

bool StepRunner::At(const char* failpoint, int64_t step) const {
  return Failpoint(failpoint, step + 1, ranks_.rank(), ranks_.size());
}

void StepRunner::SpoilParameter() { Spoil(replica_.values({0, 1}), 1); }

// Each rank looks where it has the sums.
std::string StepRunner::FirstBadGradient() {
  Arena& gradients = replica_.gradients();
  gradients.Fetch();
  const std::deque<Parameter>& parameters = replica_.parameters().all();
  const auto is_bad = [&](const Parameter& parameter) {
    const std::vector<ElementRange> mine = replica_.optimizer().HeldOf(parameter);
    return std::ranges::any_of(mine, [&](const ElementRange& part) {
      const std::span<const float> values =
          gradients.host().subspan(parameter.offset + part.begin, part.size());
      return !std::ranges::all_of(values, [](float g) { return std::isfinite(g); });
    });
  };
  const auto place = std::ranges::find_if(parameters, is_bad) - parameters.begin();
  // Ranks share only a maximum: that of the negated places is the first place of all ranks. A rank
  // that finds nothing has the place after the last parameter.
  const auto found = static_cast<size_t>(-LargestOfRanks(ranks_, -place));
  return found < parameters.size() ? ", first in the gradient of " + parameters[found].name : "";
}

}  // namespace syntra
