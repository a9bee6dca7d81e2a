// SPDX-License-Identifier: Apache-2.0
// A run on a cluster that need not exist: the plan, a step, the memory, the saves and the cost of
// one layout of ranks, or of more and more ranks with the same rows each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "plan/scaling.h"
#include "plan/training_plan.h"

namespace syntra {

struct RunForecast {
  std::string model;  // what a curve of several forecasts is called
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
RunForecast ForecastOn(const Config& config, const Layout& layout, const std::string& link);

// Forecasts for 1, 2, 4, ... ranks of one node, then 2, 4, ... nodes, up to `largest`. In each a
// rank has the same rows, and the run the same examples, as on the largest layout.
std::vector<RunForecast> ForecastsUpTo(const Config& config, const Layout& largest,
                                       const std::string& link);

}  // namespace syntra
