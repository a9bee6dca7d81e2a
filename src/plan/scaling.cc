// SPDX-License-Identifier: Apache-2.0
#include "plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/parameters.h"

namespace syntra {
namespace {

// Blocks of parameters have a sum of squares each, which ranks that share an update add.
constexpr double kSumsShare = 1.0 / ParameterStore::kBlock;

// A rank's share of the machine.
struct Share {
  double flops = 0, memory_bandwidth = 0;
};

// Ranks on CPUs have whole cores, or where they outnumber them, parts of one.
Share ShareOf(const Cluster& cluster, int ranks_per_node) {
  if (cluster.has_gpus()) return {cluster.flops, cluster.memory_bandwidth};
  const int cores = cluster.cores_per_node;
  const double mine = cores >= ranks_per_node ? cores / ranks_per_node  // whole ones
                                              : static_cast<double>(cores) / ranks_per_node;
  return {mine * cluster.flops, cluster.memory_bandwidth / ranks_per_node};
}

GpuNetwork GpusOf(const Cluster& cluster) {
  return {cluster.inside, cluster.between, cluster.start};
}

HostNetwork HostsOf(const Cluster& cluster) {
  return {.inside = cluster.inside, .between = cluster.between};
}

double ComputeSeconds(const StepWork& work, const Share& share) {
  return work.micro_batches *
         (work.flops / share.flops + work.weight_bytes / share.memory_bandwidth);
}

// To the ranks that update a bucket, or back from them. NCCL scatters and gathers equal shares
// alone; others travel to and from their owners in one launch (dist/nccl.cc).
double BucketSeconds(const BucketWork& bucket, const GpuNetwork& network, const Layout& layout) {
  switch (bucket.shares) {
    case BucketShares::kNone:
      return network.AllReduceSeconds(layout, bucket.bytes);
    case BucketShares::kEqual:
      return network.ReduceScatterSeconds(layout, bucket.bytes);
    case BucketShares::kTensors:
      return network.ReduceSeconds(layout, bucket.bytes);
  }
  return NAN;
}

void AddCommunicationOfHosts(const StepWork& work, const HostNetwork& hosts, const Layout& layout,
                             StepPrediction* step) {
  if (work.sharded) {
    step->sums = hosts.ReduceScatterSeconds(layout, work.gradient_bytes);
    step->gather = hosts.AllReduceSeconds(layout, kSumsShare * work.parameter_bytes) +
                   hosts.AllGatherSeconds(layout, work.parameter_bytes);
    step->exposed_gather = step->gather;
  } else {
    step->sums = hosts.AllReduceSeconds(layout, work.gradient_bytes);
  }
  step->exposed_sums = step->sums;
}

// The norm of the gradients, a part of the update, reads each bucket once it is summed.
void AddCommunicationOfGpus(const StepWork& work, const GpuNetwork& gpus, double memory_bandwidth,
                            const Layout& layout, StepPrediction* step) {
  std::vector<double> seconds, norms;
  for (const BucketWork& bucket : work.buckets) {
    seconds.push_back(BucketSeconds(bucket, gpus, layout));
    norms.push_back(work.update_share * bucket.bytes / memory_bandwidth);
    if (bucket.shares != BucketShares::kNone) step->gather += seconds.back();
  }
  step->sums = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  step->exposed_sums =
      ExposedSeconds(work.buckets, seconds, norms, step->backward / work.micro_batches);
  if (!work.sharded) return;
  // The update waits for the blocks' sums.
  double exposed = gpus.AllReduceSeconds(layout, kSumsShare * work.parameter_bytes);
  if (std::ranges::count(work.buckets, BucketShares::kTensors, &BucketWork::shares) > 0) {
    step->exposed_sums += gpus.ChainLatency(layout);
    exposed += gpus.ChainLatency(layout);
  }
  step->gather += exposed;
  step->exposed_gather =
      exposed + WaitForBuckets(work.buckets, seconds, step->forward / work.micro_batches);
}

void AddCommunication(const StepWork& work, const Cluster& cluster, const Layout& layout,
                      StepPrediction* step) {
  if (cluster.has_gpus()) {
    AddCommunicationOfGpus(work, GpusOf(cluster), cluster.memory_bandwidth, layout, step);
  } else {
    AddCommunicationOfHosts(work, HostsOf(cluster), layout, step);
  }
}

// One rank with the rows that a GPU, or all ranks of a node, has in the layout.
double AloneSeconds(const StepWork& work, const Cluster& cluster, const Layout& layout) {
  const Share all = ShareOf(cluster, 1);
  const int parts = cluster.has_gpus() ? 1 : layout.ranks_per_node;
  return parts * ComputeSeconds(work, all) + work.update_bytes / all.memory_bandwidth;
}

}  // namespace

StepPrediction PredictStep(const StepWork& work, const Cluster& cluster, const Layout& layout) {
  const Share share = ShareOf(cluster, layout.ranks_per_node);
  const double compute = ComputeSeconds(work, share);
  StepPrediction step;
  step.backward = compute * work.backward_share;
  step.forward = compute - step.backward;
  step.update = work.update_share * work.update_bytes / share.memory_bandwidth;
  if (layout.ranks() == 1) return step;
  AddCommunication(work, cluster, layout, &step);
  // The count of target tokens before the step, and what all ranks exchange after it.
  step.small_numbers = 2 * ShortAllReduceSeconds(layout, cluster.inside, cluster.between);
  return step;
}

double Efficiency(const StepWork& work, const Cluster& cluster, const Layout& layout) {
  return AloneSeconds(work, cluster, layout) / PredictStep(work, cluster, layout).seconds();
}

double ExposedSeconds(std::span<const BucketWork> buckets, std::span<const double> seconds,
                      std::span<const double> work, double backward) {
  double summed = 0, worked = backward, waited = 0;  // the first two since that pass began
  for (size_t i = 0; i < buckets.size(); ++i) {
    summed = std::max(summed, buckets[i].ready * backward) + seconds[i];
    waited += std::max(0.0, summed - worked);
    worked = std::max(worked, summed) + work[i];
  }
  return waited;
}

double WaitForBuckets(std::span<const BucketWork> buckets, std::span<const double> seconds,
                      double forward) {
  std::vector<size_t> order;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].shares != BucketShares::kNone) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return buckets[i].place; });
  double gathered = 0, waited = 0;  // since the forward pass could begin
  for (const size_t i : order) {
    gathered += seconds[i];
    waited = std::max(waited, gathered - buckets[i].needed * forward);
  }
  return waited;
}

CheckpointPrediction PredictCheckpoint(const StepWork& work, const Cluster& cluster,
                                       const Layout& layout, double between) {
  CheckpointPrediction save;
  save.write = work.checkpoint_bytes / cluster.storage_bandwidth;
  // Rank 0 has most to write: what the ranks do not share, and its own share. It copies that from
  // its GPU, or in its host's memory: read and written.
  const double own = work.checkpoint_bytes - work.shared_state_bytes * (1 - 1.0 / layout.ranks());
  const double copy =
      cluster.has_gpus() ? own / cluster.host_bandwidth : 2 * own / cluster.memory_bandwidth;
  save.stall = copy + (work.asynchronous_saves ? std::max(0.0, save.write - between) : save.write);
  return save;
}

RunCost CostOf(const Cluster& cluster, const Layout& layout, double seconds) {
  const double units = cluster.has_gpus() ? static_cast<double>(layout.ranks())
                                          : double{1} * layout.nodes * cluster.cores_per_node;
  const double hours = units * seconds / 3600;
  return {seconds, hours, hours * cluster.price};
}

}  // namespace syntra
