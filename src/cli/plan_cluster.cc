// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_cluster.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "cli/plan_report.h"
#include "cli/scaling_report.h"

namespace syntra {
namespace {

constexpr int kMostRanks = 4096;

// The configurations to predict, each with what its curve is called.
std::vector<std::pair<std::string, Config>> LoadModels(const ModelOptions& common,
                                                       const ClusterOptions& options) {
  std::vector<std::pair<std::string, Config>> list;
  if (options.models.empty()) list.emplace_back("", LoadForModel(common));
  const ConfigOptions& config = *common.config;
  for (const std::string& model : options.models) {
    std::vector<std::string> files{model};
    std::ranges::copy(config.Files(), std::back_inserter(files));
    list.emplace_back(Path(model).stem().string(), LoadConfig(files, config.overrides, kForModel));
  }
  return list;
}

void CheckLayout(const ClusterConfig& cluster, const ClusterOptions& options) {
  const Layout layout = options.layout();
  if (layout.ranks() > kMostRanks) {
    Fail(ExitCode::kConfig, "{} nodes of {} are {} ranks; predictions go up to {}", layout.nodes,
         layout.ranks_per_node, WithThousands(layout.ranks()), WithThousands(kMostRanks));
  }
  if (cluster.cores_per_node() > 0 && options.gpus_per_node > 0) {
    Fail(ExitCode::kConfig,
         "--gpus-per-node: the ranks of this cluster share cores (cluster.cores_per_node); use "
         "--ranks-per-node");
  }
  if (cluster.cores_per_node() == 0 && options.ranks_per_node > 0) {
    Fail(ExitCode::kConfig,
         "--ranks-per-node: each rank of this cluster has a GPU (cluster.cores_per_node is not "
         "set); use --gpus-per-node");
  }
}

// With and without shared state where it is drawn, otherwise as configured.
std::vector<ScalingPoint> SweepOf(const std::string& name, Config config,
                                  const ClusterOptions& options) {
  std::vector<ScalingPoint> all;
  const auto add = [&](const std::string& called) {
    for (ScalingPoint& point : Sweep(config, options.layout(), options.link)) {
      point.model = called;
      all.push_back(std::move(point));
    }
  };
  if (options.svg.empty()) {
    add(name);
    return all;
  }
  config.mutable_train()->set_sharding(TrainConfig::NONE);
  add(name.empty() ? "not sharded" : name);
  config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
  add(name.empty() ? "sharded" : name + ", sharded");
  return all;
}

void PrintSweep(const std::vector<ScalingPoint>& points, bool json) {
  if (!json) return fmt::print("{}", SweepText(points));
  Json list = Json::array();
  for (const ScalingPoint& point : points) list.push_back(PredictionJson(point));
  fmt::print("{}\n", JsonText({{"cluster", ClusterJson(points.front().cluster)}, {"sweep", list}}));
}

void PredictSweep(const ModelOptions& common, const ClusterOptions& options, bool json) {
  std::vector<ScalingPoint> points;
  for (const auto& [name, loaded] : LoadModels(common, options)) {
    CheckLayout(loaded.cluster(), options);
    std::ranges::move(SweepOf(name, loaded, options), std::back_inserter(points));
  }
  if (!options.svg.empty()) WriteChosenFile(options.svg, EfficiencySvg(points));
  PrintSweep(points, json);
}

void PredictOne(const Config& config, const ClusterOptions& options, bool json) {
  CheckLayout(config.cluster(), options);
  const ScalingPoint point = PredictOn(config, options.layout(), options.link);
  if (json) {
    Json all = PlanJson(*point.plan, point.cluster.has_gpus());
    all["cluster"] = ClusterJson(point.cluster);
    all["prediction"] = PredictionJson(point);
    fmt::print("{}\n", JsonText(all));
  } else {
    PrintPlan(*point.plan, point.cluster.has_gpus());
    fmt::print("{}", PredictionText(point));
  }
}

}  // namespace

std::shared_ptr<ClusterOptions> AddClusterOptions(CLI::App& app) {
  const auto options = std::make_shared<ClusterOptions>();
  const CLI::Range any_number(1, kMostRanks);
  auto* nodes = app.add_option("--nodes", options->nodes,
                               "Predict a run on this many nodes of the configuration's cluster, "
                               "e.g. that of configs/clusters/h100_infiniband.textproto")
                    ->check(any_number)
                    ->excludes("--ranks");
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->needs(nodes);
  };
  auto* gpus =
      add("--gpus-per-node", options->gpus_per_node, "GPUs on each node, with one rank per GPU")
          ->check(any_number);
  add("--ranks-per-node", options->ranks_per_node, "Ranks on each node, which share its cores")
      ->check(any_number)
      ->excludes(gpus);
  add("--link", options->link, "Which of the cluster's links connects the nodes")
      ->type_name("NAME");
  app.add_flag(
         "--sweep", options->sweep,
         "Also predict fewer ranks (1, 2, 4 and so on), with the same number of rows per rank")
      ->needs(nodes);
  Repeatable(add("--model", options->models,
                 "Configuration of a model to compare, read before the other files"))
      ->excludes("--init-from")
      ->type_name("FILE");
  add("--svg", options->svg,
      "Write a picture of each model's efficiency in the sweep, with and without train.sharding, "
      "to this file")
      ->type_name("FILE");
  return options;
}

void PredictOnCluster(const ModelOptions& common, const ClusterOptions& options, bool json) {
  const bool is_one = !options.sweep && options.svg.empty() && options.models.empty();
  is_one ? PredictOne(LoadForModel(common), options, json) : PredictSweep(common, options, json);
}

}  // namespace syntra
