// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "optim/schedule.h"
#include "train/failpoint.h"

namespace syntra {

namespace {

// 25 MiB: published figures of NCCL reach a network's rate from 16 MiB on, and the last piece is
// hidden by nothing.
constexpr int64_t kBucketElements = (int64_t{25} << 20) / sizeof(float);

// Whether the ranks' micro-batches are subtrees of the tree over all `leaves` of a step.
bool SharesTree(int64_t leaves, int64_t ranks) {
  return ranks == 1 || (leaves % ranks == 0 && std::has_single_bit(uint64_t(leaves / ranks)));
}

void CheckTreeIsShared(int64_t leaves, int ranks) {
  if (SharesTree(leaves, ranks)) return;
  std::vector<std::string> good;
  for (int64_t count = 1; count <= leaves; ++count) {
    if (SharesTree(leaves, count)) good.push_back(std::to_string(count));
  }
  Fail(ExitCode::kConfig,
       "{} ranks cannot share one tree of {} micro-batches, as train.reduction EXACT needs; "
       "start {} ranks or change train.micro_batch_size",
       ranks, leaves, Join(good, ", "));
}

}  // namespace

BatchPartition BatchPartition::Of(const TrainConfig& config, int ranks) {
  const int64_t batch = config.batch_size();
  if (batch % ranks != 0) {
    Fail(ExitCode::kConfig, "train.batch_size {} cannot be shared equally by {} ranks", batch,
         ranks);
  }
  if (config.reduction() == TrainConfig::EXACT) {
    CheckTreeIsShared(batch / config.micro_batch_size(), ranks);
  }
  const int64_t per_rank = batch / ranks;
  const int64_t micro = config.micro_batch_size() > 0
                            ? std::min<int64_t>(config.micro_batch_size(), per_rank)
                            : per_rank;
  if (per_rank % micro != 0) {
    Fail(ExitCode::kConfig,
         "the {} examples of each of {} ranks cannot be cut into micro-batches of {}; change "
         "train.micro_batch_size",
         per_rank, ranks, micro);
  }
  return {batch, per_rank, micro};
}

// The places of a step are filled in the order of their reversed bits (0, 4, 2, 6, 1, ...), so that
// in any power-of-two share of neighbouring places lengths are spread evenly.
std::vector<int64_t> BatchPartition::MixedMicroBatches(int rank) const {
  const int bits = std::bit_width(static_cast<uint64_t>(micro_batches() - 1));
  const auto reversed = [&](int64_t place) {
    int64_t value = 0;
    for (int bit = 0; bit < bits; ++bit) value = value << 1 | (place >> bit & 1);
    return value;
  };
  std::vector<int64_t> places(micro_batches());
  std::iota(places.begin(), places.end(), int64_t{0});
  std::ranges::sort(places, {}, reversed);
  const int64_t first = rank * micro_batches_per_rank();
  std::vector<int64_t> mine(micro_batches_per_rank());
  for (int64_t k = 0; k < micro_batches(); ++k) {
    const int64_t place = places[k] - first;
    if (place >= 0 && place < std::ssize(mine)) mine[place] = k;
  }
  return mine;
}

// A rank that does not know makes the sum NaN.
double MeasurePeak(Communicator& ranks, Backend& backend, DType type) {
  ranks.Barrier();
  double peak = backend.PeakFlops(type);
  ranks.AllReduceSum(std::span(&peak, 1));
  return peak;
}

StepRunner::StepRunner(const Config& config, Replica& replica, Communicator& ranks)
    : config_(config),
      replica_(replica),
      ranks_(ranks),
      partition_(BatchPartition::Of(config.train(), ranks.size())) {
  if (config.train().reduction() == TrainConfig::EXACT) {
    tree_.emplace(partition_.micro_batches_per_rank(), replica.parameters().gradient_elements(),
                  replica.backend());
  } else if (ranks.size() > 1 && !replica.backend().device().is_host()) {
    buckets_ = true;
    replica.SetBuckets(kBucketElements);
  }
}

std::vector<Batch> StepRunner::Fetch(const TrainingData& data, int64_t step) const {
  std::vector<Batch> batches;
  const int64_t drawn = At("wrong_batch", step) ? step + 1 : step;
  const int64_t rows = partition_.micro_batch_rows;
  std::vector<int64_t> numbers(partition_.micro_batches_per_rank());
  std::iota(numbers.begin(), numbers.end(), ranks_.rank() * std::ssize(numbers));
  if (data.Trims()) numbers = partition_.MixedMicroBatches(ranks_.rank());
  for (const int64_t number : numbers) {
    batches.push_back(data.Get(drawn, partition_.batch_size, number * rows, rows));
  }
  return batches;
}

double StepRunner::Flops(std::span<const Batch> batches) const {
  double flops = 0;
  for (const Batch& batch : batches) {
    flops += replica_.Training(ShapeOf(batch)).program().model_flops();
  }
  return flops;
}

double StepRunner::InverseDenominator(const std::vector<Batch>& batches) {
  if (config_.train().loss_denominator() == TrainConfig::TARGET_SLOTS) {
    // However short the batch's rows are.
    return 1.0 / static_cast<double>(partition_.batch_size * RowSlots(config_).targets);
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
  for (const Batch& batch : batches) {
    const bool alone = &batch == &batches.front() || tree_;
    const Gradients gradients = alone ? Gradients::kReplace : Gradients::kAdd;
    if (buckets_ && &batch == &batches.back()) {
      replica_.Differentiate(batch, facts, gradients,
                             [&](TensorView piece) { StartSum(piece, facts.step); });
    } else {
      replica_.Differentiate(batch, facts, gradients);
    }
    if (tree_) tree_->Add(replica_.gradients().view());
  }
}

void StepRunner::StartSum(TensorView gradients, int64_t step) {
  if (At("gradient_nan", step)) {
    const float bad = std::numeric_limits<float>::quiet_NaN();
    gradients.device->CopyIn(gradients.data, &bad, sizeof(bad));
  }
  ranks_.StartAllReduceSum(gradients);
}

// On a GPU everything up to Outcome only enqueues work, so that the GPU never waits for the host.
StepResult StepRunner::Run(const std::vector<Batch>& batches, int64_t step, const RankNote& note) {
  using Clock = std::chrono::steady_clock;
  const BatchFacts facts = FactsOf(batches, step);
  StepResult result;
  result.learning_rate =
      LearningRate(config_.optimizer().schedule(), step, config_.train().steps());
  result.flops = Flops(batches);
  for (const Batch& batch : batches) {
    result.slots += static_cast<double>(batch.rows * (batch.input_length + batch.target_length));
  }
  const auto begin = Clock::now();
  replica_.RedrawParameters(config_.train().seed(), step);
  if (At("lost_state", step)) replica_.ForgetState();
  Differentiate(batches, facts);
  if (At("slow_rank", step)) std::this_thread::sleep_for(std::chrono::milliseconds(100));

  const auto ready = Clock::now();
  if (!buckets_) StartSum(replica_.gradients().view(), step);
  ranks_.FinishSums();
  result.sync_seconds = std::chrono::duration<double>(Clock::now() - ready).count();

  replica_.Update({.step = optimizer_steps_before_ + step, .rate = result.learning_rate});
  const UpdateOutcome outcome = replica_.Outcome();
  // Behind the wait for the device: a communicator that lost a rank says so here, before anybody
  // believes what it summed.
  const auto done = Clock::now();
  Share(note, std::chrono::duration<double>(ready - begin).count(), &result);
  result.sync_seconds += std::chrono::duration<double>(Clock::now() - done).count();
  result.sums = outcome.sums;
  result.gradient_norm = outcome.gradient_norm;
  // All ranks hold the same sums, so all decide alike.
  result.skipped = outcome.skipped;
  if (result.skipped) {
    Log().warn("step {} skipped: the {} is not finite{}", step + 1,
               std::isfinite(result.sums.objective) ? "gradient" : "loss", FirstBadGradient());
  }
  return result;
}

// All small numbers of a step travel in one collective.
void StepRunner::Share(const RankNote& note, double compute_seconds, StepResult* result) {
  const std::array mine{note.stop ? 1.0 : 0.0, note.save ? 1.0 : 0.0,
                        note.data_seconds + compute_seconds, result->slots, result->flops};
  const std::vector<double> all = ranks_.AllGather(std::span<const double>(mine));
  result->slots = result->flops = 0;
  for (size_t at = 0; at < all.size(); at += mine.size()) {
    result->requests_to_stop += static_cast<int>(all[at]);
    result->requests_to_save += static_cast<int>(all[at + 1]);
    result->rank_seconds.push_back(all[at + 2]);
    result->slots += all[at + 3];
    result->flops += all[at + 4];
  }
}

bool StepRunner::At(const char* failpoint, int64_t step) const {
  return Failpoint(failpoint, step + 1, ranks_.rank(), ranks_.size());
}

std::string StepRunner::FirstBadGradient() const {
  replica_.gradients().Fetch();
  const std::span<float> gradients = replica_.gradients().host();
  for (const Parameter& parameter : replica_.parameters().all()) {
    for (const float g : gradients.subspan(parameter.offset, parameter.shape.size())) {
      if (!std::isfinite(g)) return ", first in the gradient of " + parameter.name;
    }
  }
  return "";
}

}  // namespace syntra
