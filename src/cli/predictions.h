// SPDX-License-Identifier: Apache-2.0
// The predictions of `plan --nodes`: one run on one layout of ranks, or more and more ranks with
// the same rows each; as text, as JSON and as a picture, always with the figures that they follow
// from.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "configs/schema/config.pb.h"
#include "plan/scaling.h"
#include "plan/training_plan.h"

namespace syntra {

// The plan's memory, which is that of programs on this machine's CPU; on GPUs, which need not be
// here, also of bf16 copies of the parameters (train/rounded_parameters.h).
MemoryNeeds NeedsOn(const TrainingPlan& plan, bool gpus);

struct ScalingPoint {
  std::string model;  // what a curve is called
  Layout layout;
  Cluster cluster;
  std::shared_ptr<const TrainingPlan> plan;
  StepPrediction step;
  double efficiency = 0;
  double rows_per_second = 0;
  CheckpointPrediction save;
  int64_t saves = 0;
  RunCost cost;       // of the run's steps and saves
  double memory = 0;  // that the ranks of one GPU or node hold together
  bool fits = true;   // whether that fits into the GPU or node, as far as it is known

  std::string unit() const { return cluster.has_gpus() ? "GPU" : "core"; }
};

// `link`: between nodes; empty: as configured. Throws Error(kConfig) if the ranks cannot share the
// batch, or the cluster lacks figures.
ScalingPoint PredictOn(const Config& config, const Layout& layout, const std::string& link);

// Predictions for 1, 2, 4, ... ranks of one node, then 2, 4, ... nodes, up to `largest`. In each a
// rank has the same rows, and the run the same examples, as on the largest layout.
std::vector<ScalingPoint> Sweep(const Config& config, const Layout& largest,
                                const std::string& link);

std::string PredictionText(const ScalingPoint& point);

// One line for each layout.
std::string SweepText(std::span<const ScalingPoint> points);

Json PredictionJson(const ScalingPoint& point);
Json ClusterJson(const Cluster& cluster);

// The efficiency of each model's points against GPUs or ranks, those that do not fit into memory
// left out.
std::string EfficiencySvg(std::span<const ScalingPoint> points);

}  // namespace syntra
