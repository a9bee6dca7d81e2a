// SPDX-License-Identifier: Apache-2.0
// syntra plan --nodes: predicts runs on a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/run_config.h"
#include "cli/scaling_points.h"

namespace syntra {

// Where ranks would run.
struct ClusterOptions {
  int nodes = 0;  // 0: not asked for
  int gpus_per_node = 0, ranks_per_node = 0;
  std::string link;
  bool sweep = false;
  std::vector<std::string> models;
  std::string svg;

  Layout layout() const { return {nodes, std::max({1, gpus_per_node, ranks_per_node})}; }
};

// Adds --nodes and the options that need it.
std::shared_ptr<ClusterOptions> AddClusterOptions(CLI::App& app);

// Prints the prediction, or those of a sweep or of several models.
void PredictOnCluster(const ModelOptions& common, const ClusterOptions& options, bool json);

}  // namespace syntra
