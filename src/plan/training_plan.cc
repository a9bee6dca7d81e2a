// SPDX-License-Identifier: Apache-2.0
#include "plan/training_plan.h"

#include <algorithm>

#include "data/example.h"
#include "model/programs.h"
#include "plan/evaluation_rows.h"

namespace syntra {
namespace {

// How many ranks share the optimizer's state.
int ShardsOf(const TrainConfig& config, int ranks) {
  return config.sharding() == TrainConfig::OPTIMIZER_STATE ? ranks : 1;
}

BatchShape LargestShape(const Config& config, const BatchPartition& partition) {
  const ExampleLengths row = RowSlots(config);
  return {partition.micro_batch_rows, row.inputs, row.targets};
}

}  // namespace

std::shared_ptr<const TrainingPlan> TrainingPlan::Make(const Config& config,
                                                       const PlannedRanks& ranks) {
  return std::shared_ptr<const TrainingPlan>(new TrainingPlan(config, ranks));
}

TrainingPlan::TrainingPlan(const Config& config, const PlannedRanks& ranks)
    : config_(config),
      ranks_(ranks.ranks),
      backend_(*ranks.backend),
      partition_(BatchPartition::Of(config_.train(), ranks_)),
      shares_(ShardsOf(config_.train(), ranks_)),
      model_(config_.model(), ActivationType(config_.train().precision()), shards()),
      shape_(LargestShape(config_, partition_)),
      bucket_elements_(ranks.bucket_elements.value_or(
          BucketElements(config_.train(), ranks_, backend_.device().is_host()))),
      buckets_(parameters().Buckets(bucket_elements_)),
      trainings_([this](const BatchShape& shape) {
        const TrainConfig& train = config_.train();
        return TrainingProgram(model(), parameters(), model_.activations(), shape,
                               {train.z_loss(), train.label_smoothing()}, train.recompute(),
                               train.joint_cross_attention()
                                   ? ProgramBuilder::Join::kAcrossRegions
                                   : ProgramBuilder::Join::kWithinRegions);
      }) {
  if (shards() > 1) {
    shared_buckets_ =
        UpdateShares(parameters(), GrainOf(config_.optimizer()), shards(), bucket_elements_);
  }
}

const TrainingPlan::Share& TrainingPlan::ShareOf(int rank) const {
  return shares_.at(shards() > 1 ? rank : 0);
}

std::unique_ptr<const Optimizer> TrainingPlan::OptimizerOf(int rank) const {
  return MakeOptimizer(config_.optimizer(), parameters(),
                       shards() == 1 ? buckets_ : PartsOf(shared_buckets_, rank));
}

const Optimizer& TrainingPlan::optimizer(int rank) const {
  return *ShareOf(rank).optimizer.Get([&] { return OptimizerOf(rank); });
}

std::shared_ptr<const RecordedUpdate> TrainingPlan::Update(int rank) const {
  return ShareOf(rank).update.Get([&] {
    return std::make_shared<const RecordedUpdate>(optimizer(rank).UpdateProgram(parameters()));
  });
}

int TrainingPlan::rank_with_most_state() const {
  int found = 0;
  int64_t most = -1;
  for (int rank = 0; rank < shards(); ++rank) {
    const int64_t elements = OptimizerOf(rank)->state_elements();
    if (elements > most) found = rank;
    most = std::max(most, elements);
  }
  return found;
}

std::vector<GradientBucket> TrainingPlan::BucketsOf(const Program& training) const {
  if (bucket_elements_ == 0) return {};
  return GradientBuckets(training, parameters(), bucket_elements_);
}

std::vector<size_t> TrainingPlan::SharedBucketsNeeded(const Program& training) const {
  std::vector<ElementRange> buckets;
  for (auto bucket = shared_buckets_.rbegin(); bucket != shared_buckets_.rend(); ++bucket) {
    buckets.push_back(bucket->elements);
  }
  return BucketsNeeded(training, buckets);
}

std::vector<BatchShape> TrainingPlan::EvaluationShapes() const {
  std::vector<BatchShape> shapes;
  if (config_.data().validation_size() == 0) return shapes;
  for (const int64_t rows : EvaluationPieces(config_)) {
    shapes.push_back({rows, shape_.input_length, shape_.target_length});
  }
  return shapes;
}

std::vector<PlannedTensor> TrainingPlan::StateTensors(int rank) const {
  std::vector<PlannedTensor> tensors;
  for (const StateTensor& tensor : optimizer(rank).state()) {
    tensors.push_back({.name = tensor.name,
                       .type = {DType::kF32, tensor.shape},
                       .held = tensor.held,
                       .offset = tensor.offset});
  }
  return tensors;
}

double TrainingPlan::checkpoint_bytes() const {
  int64_t elements = parameters().element_count();
  for (const StateTensor& tensor : optimizer(0).state()) elements += tensor.shape.size();
  return static_cast<double>(elements) * sizeof(float);
}

double TrainingPlan::flops_per_step() const {
  return Training()->flops * static_cast<double>(partition_.micro_batches());
}

double TrainingPlan::recomputed_flops_per_step() const {
  return Training()->recomputed_flops * static_cast<double>(partition_.micro_batches());
}

const MemoryNeeds& TrainingPlan::memory() const {
  return memory_.Get([&] { return MemoryNeedsOf(*this); });
}

}  // namespace syntra
