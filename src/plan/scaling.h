// SPDX-License-Identifier: Apache-2.0
// Predicts a training step on a cluster, which need not exist, from a rank's work
// (plan/step_work.h) and the figures of the machines, in closed form. No I/O; nothing is measured.
//
// The order of events is that of train/step.cc:
//
//   GPUs      the last micro-batch's backward pass fills the buckets of the gradients in turn, and
//             NCCL sums one after another beside it; the norm of the gradients is made of each
//             bucket once it is summed, and the rest of the update waits for the norm
//   CPUs      all gradients are summed once the backward pass is done
//   sharding  each bucket is scattered over the ranks that update it; a rank updates its shares; an
//             all-gather of each bucket brings all ranks the others': on GPUs one after another
//             beside the first micro-batch's forward half, which waits for each where it reads it
//
// Left out are data, evaluations, the share of the GPU that NCCL's kernels take from other kernels,
// other jobs on the network, and waits for the slowest rank. So efficiencies are upper bounds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/collective_costs.h"

namespace syntra {

// The machines. Ranks compute on a GPU each, or share the cores of their node.
struct Cluster {
  std::string name, source;
  int cores_per_node = 0;  // 0: GPUs
  double flops = 0;        // operations a second in training, of one GPU or one core
  // Bytes a second that are read and written, of one GPU or of all cores of a node together.
  double memory_bandwidth = 0;
  double memory = 0;  // bytes, of one GPU or of a node; 0: not known
  Link inside, between;
  std::string between_name;      // of the link, as people know it
  double start = 0;              // GpuNetwork::start
  double host_bandwidth = 0;     // from a GPU's memory to its host's, bytes a second
  double storage_bandwidth = 0;  // what one rank writes durably
  double price = 0;              // of a GPU or a core for an hour; 0: not known

  bool has_gpus() const { return cores_per_node == 0; }
};

// What a rank updates of a bucket: all of it, an equal part, or whole tensors.
enum class BucketShares { kNone, kEqual, kTensors };

// A bucket of the gradients.
struct BucketWork {
  double ready = 0;  // share of the backward pass after which it is complete
  // If ranks gather it: its place in the order of the gathers, and the share of the forward pass
  // that needs neither it nor the buckets after it.
  int place = 0;
  double needed = 0;
  double bytes = 0;
  BucketShares shares = BucketShares::kNone;
};

// The work of one rank in a step, whatever the machine.
struct StepWork {
  double micro_batches = 1;
  // Work of one micro-batch, forward and backward with what is recomputed.
  double flops = 0, backward_share = 0;
  double rows = 0;          // of all micro-batches
  double weight_bytes = 0;  // of parameters read and gradients written, whatever the rows
  double update_bytes = 0;  // read and written by an update of all parameters
  bool sharded = false;     // ranks share the update
  double update_share = 1;  // the largest rank's part of an update
  double parameter_bytes = 0, gradient_bytes = 0;
  std::vector<BucketWork> buckets;  // in the order of their sums; empty: all at once
  // Bytes of a checkpoint, and how many of them the ranks share.
  double checkpoint_bytes = 0, shared_state_bytes = 0;
  bool asynchronous_saves = false;
};

// The seconds of a step, by its parts.
struct StepPrediction {
  double forward = 0, backward = 0;  // of all micro-batches
  double sums = 0;                   // how long the network is busy with gradients
  double exposed_sums = 0;  // the part that neither the backward pass nor the norm's work hides
  double update = 0;
  double gather = 0;          // how long the network is busy with what ranks have updated
  double exposed_gather = 0;  // the part that the forward pass does not hide
  double small_numbers = 0;   // losses, counts, requests

  double seconds() const {
    return forward + backward + exposed_sums + update + exposed_gather + small_numbers;
  }
  double exposed() const { return exposed_sums + exposed_gather + small_numbers; }
};

StepPrediction PredictStep(const StepWork& work, const Cluster& cluster, const Layout& layout);

// How much of its speed alone a rank keeps in the layout: the time of a step with its rows on one
// GPU, or on all cores of a node, divided by the predicted time in the layout. 1 with one rank.
double Efficiency(const StepWork& work, const Cluster& cluster, const Layout& layout);

// How many seconds the work on the summed buckets waits for their sums. The work begins after the
// backward pass and takes the buckets in order; sums are made one after another, none before its
// bucket is complete. `seconds`: of each bucket's sum. `work`: seconds of the work on each.
double ExposedSeconds(std::span<const BucketWork> buckets, std::span<const double> seconds,
                      std::span<const double> work, double backward);

// How many seconds a forward pass waits for buckets that are gathered one after another, beginning
// with the pass. `seconds`: of each bucket's gather.
double WaitForBuckets(std::span<const BucketWork> buckets, std::span<const double> seconds,
                      double forward);

struct CheckpointPrediction {
  double write = 0;  // from the copy or the state to the end of the file
  double stall = 0;  // that training waits for a checkpoint
};
// `between`: seconds of training from one checkpoint to the next; a save waits until the last one
// has ended.
CheckpointPrediction PredictCheckpoint(const StepWork& work, const Cluster& cluster,
                                       const Layout& layout, double between);

// The time and the price of a whole run, which takes `seconds`.
struct RunCost {
  double seconds = 0;
  double unit_hours = 0;  // of GPUs or cores
  double money = 0;       // in the unit of Cluster::price; 0: not known
};
RunCost CostOf(const Cluster& cluster, const Layout& layout, double seconds);

}  // namespace syntra
