// SPDX-License-Identifier: Apache-2.0
// syntra plan
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/measure_cluster.h"
#include "cli/ranks.h"
#include "cli/report_options.h"
#include "cli/scaling_report.h"
#include "config/print.h"
#include "core/thread.h"
#include "kernels/cuda.h"
#include "train/replica.h"
#include "train/sizes.h"

namespace syntra {
namespace {

// What a step may take on this machine.
struct TimeEstimate {
  double peak = NAN;  // FLOP/s of all threads together, measured now; NaN: not known
  double share = 0;   // of the peak
  double step = NAN;  // seconds
  double run = NAN;   // seconds of all steps, without evaluations and checkpoints
  const char* unknown_because = "the peak of this processor is not known";
};

// Of a step's FLOPs at the share of the peak that the training step of a 60 M model reached, see
// "Measured" in README.md.
TimeEstimate EstimateTime(const Config& config, const RunSizes& sizes) {
  TimeEstimate estimate;
  const TrainConfig& train = config.train();
  if (train.device() == TrainConfig::CUDA ||
      (train.device() == TrainConfig::AUTO && FindGpus().count > 0)) {
    estimate.unknown_because = "no speed on a GPU has been measured";
    return estimate;
  }
  if (train.threads() > 0) SetThreadCount(train.threads());
  const DType type = ActivationType(train.precision());
  estimate.peak = CpuBackend().PeakFlops(type);
  estimate.share = type == DType::kBF16 ? 0.75 : 0.80;
  estimate.step = sizes.flops_per_step / (estimate.share * estimate.peak);
  estimate.run = estimate.step * static_cast<double>(train.steps());
  return estimate;
}

void PrintTime(const TimeEstimate& estimate, int ranks) {
  if (std::isnan(estimate.step)) {
    fmt::print("time of a step: no estimate, as {}; syntra bench measures it\n",
               estimate.unknown_because);
    return;
  }
  fmt::print("{:22} {:>18}\n", "time of a step", fmt::format("about {:.2g} s", estimate.step));
  fmt::print("{:22} {:>18}\n", "time of the run", "about " + HumanDuration(estimate.run));
  if (ranks > 1) {
    fmt::print("{:22} {:>18}\n", fmt::format("  on {} machines", ranks),
               "about " + HumanDuration(estimate.run / ranks));
  }
  fmt::print(
      "The times are estimates: {:.0f} % of the {:.0f} GFLOP/s that {} thread{} of this machine "
      "can "
      "reach "
      "now.\nA model of 60 M parameters reached that share; small ones reach less. Evaluations, "
      "checkpoints\nand communication are not counted. To measure a step: syntra bench\n",
      100 * estimate.share, 1e-9 * estimate.peak, ThreadCount(), ThreadCount() == 1 ? "" : "s");
}

void PrintText(const RunSizes& sizes) {
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:22} {:>18}\n", name, value);
  };
  line("parameters", WithThousands(sizes.parameters));
  if (sizes.trainable_parameters != sizes.parameters) {
    line("  of which learn", WithThousands(sizes.trainable_parameters));
  }
  line("FLOPs a step", HumanCount(sizes.flops_per_step));
  line("micro-batch",
       sizes.input_length == 0
           ? fmt::format("{} x {}", sizes.rows, sizes.target_length)
           : fmt::format("{} x {}/{}", sizes.rows, sizes.input_length, sizes.target_length));
  fmt::print("memory of a rank\n");
  line("  parameters", HumanBytes(sizes.parameter_bytes));
  const int buffers = sizes.gradient_buffers;
  line("  gradients", (buffers > 1 ? fmt::format("{} x ", buffers) : "") +
                          HumanBytes(sizes.gradient_bytes / buffers));
  line("  optimizer state", HumanBytes(sizes.optimizer_bytes));
  line("  activations", HumanBytes(sizes.activation_bytes));
  if (sizes.evaluation_bytes > 0) line("  or in evaluation", HumanBytes(sizes.evaluation_bytes));
  line("  total", HumanBytes(sizes.total_bytes()));
  line("checkpoint", HumanBytes(sizes.checkpoint_bytes));
}

Json SizesJson(const RunSizes& sizes) {
  return {{"parameters", sizes.parameters},
          {"trainable_parameters", sizes.trainable_parameters},
          {"flops_per_step", sizes.flops_per_step},
          {"micro_batch_rows", sizes.rows},
          {"input_length", sizes.input_length},
          {"target_length", sizes.target_length},
          {"parameter_bytes", sizes.parameter_bytes},
          {"gradient_buffers", sizes.gradient_buffers},
          {"gradient_bytes", sizes.gradient_bytes},
          {"optimizer_bytes", sizes.optimizer_bytes},
          {"activation_bytes", sizes.activation_bytes},
          {"evaluation_bytes", sizes.evaluation_bytes},
          {"update_bytes", sizes.update_bytes},
          {"total_bytes", sizes.total_bytes()},
          {"checkpoint_bytes", sizes.checkpoint_bytes}};
}

void PrintJson(const RunSizes& sizes, const TimeEstimate& time) {
  Json all = SizesJson(sizes);
  all["estimated_step_seconds"] = time.step;
  all["estimated_run_seconds"] = time.run;
  all["peak_flops"] = time.peak;
  all["assumed_share_of_peak"] = time.share;
  fmt::print("{}\n", JsonText(all));
}

// Where ranks would run.
struct ClusterOptions {
  int nodes = 0;  // 0: not asked for
  int gpus_per_node = 0, ranks_per_node = 0;
  std::string link;
  bool sweep = false;
  std::vector<std::string> models;
  std::string svg, measured;

  Layout layout() const { return {nodes, std::max({1, gpus_per_node, ranks_per_node})}; }
};

constexpr int kMostRanks = 4096;

std::shared_ptr<ClusterOptions> AddClusterOptions(CLI::App& app) {
  const auto options = std::make_shared<ClusterOptions>();
  const CLI::Range any_number(1, kMostRanks);
  auto* nodes = app.add_option("--nodes", options->nodes,
                               "Predict a run on so many nodes of the configuration's cluster, "
                               "e.g. of configs/clusters/h100_infiniband.textproto")
                    ->check(any_number)
                    ->excludes("--ranks");
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->needs(nodes);
  };
  auto* gpus = add("--gpus-per-node", options->gpus_per_node, "GPUs of each node, a rank each")
                   ->check(any_number);
  add("--ranks-per-node", options->ranks_per_node, "Ranks that share the cores of each node")
      ->check(any_number)
      ->excludes(gpus);
  add("--link", options->link, "Which of the cluster's links is between nodes")->type_name("NAME");
  app.add_flag("--sweep", options->sweep,
               "Also predict fewer ranks, 1, 2, 4 and so on, with the same rows each")
      ->needs(nodes);
  add("--model", options->models,
      "A configuration to lay below the others; with several, each is swept")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add("--svg", options->svg,
      "Draw the sweep's efficiency of each model, with and without train.sharding")
      ->type_name("FILE");
  app.add_option("--measure", options->measured,
                 "Measure this machine with the ranks that run this, and write it as a cluster")
      ->type_name("FILE")
      ->excludes(nodes);
  return options;
}

// The configurations to predict, each with what its curve is called.
std::vector<std::pair<std::string, Config>> LoadModels(const ConfigOptions& config,
                                                       const ClusterOptions& options) {
  std::vector<std::pair<std::string, Config>> list;
  if (options.models.empty()) list.emplace_back("", config.Load(kForModel));
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
  add(name.empty() ? "ZeRO" : name + ", ZeRO");
  return all;
}

void PrintSweep(const std::vector<ScalingPoint>& points, bool json) {
  if (!json) return fmt::print("{}", SweepText(points));
  Json list = Json::array();
  for (const ScalingPoint& point : points) list.push_back(PredictionJson(point));
  fmt::print("{}\n", JsonText({{"cluster", ClusterJson(points.front().cluster)}, {"sweep", list}}));
}

void PredictSweep(const ConfigOptions& config, const ClusterOptions& options, bool json) {
  std::vector<ScalingPoint> points;
  for (const auto& [name, loaded] : LoadModels(config, options)) {
    CheckLayout(loaded.cluster(), options);
    std::ranges::move(SweepOf(name, loaded, options), std::back_inserter(points));
  }
  if (!options.svg.empty()) ReplaceFileDurably(options.svg, EfficiencySvg(points));
  PrintSweep(points, json);
}

void PredictOne(const Config& config, const ClusterOptions& options, bool json) {
  CheckLayout(config.cluster(), options);
  const ScalingPoint point = PredictOn(config, options.layout(), options.link);
  if (json) {
    Json all = SizesJson(point.sizes);
    all["cluster"] = ClusterJson(point.cluster);
    all["prediction"] = PredictionJson(point);
    fmt::print("{}\n", JsonText(all));
  } else {
    PrintText(point.sizes);
    fmt::print("{}", PredictionText(point));
  }
}

ExitCode Measure(const ConfigOptions& options, const Path& file) {
  return WithRanks("plan", [&](Communicator& ranks, Watchdog& watchdog) {
    const Config config = options.Load(kForModel);
    const Path directory = file.has_parent_path() ? file.parent_path() : ".";
    Config measured;
    *measured.mutable_cluster() =
        MeasureCluster(config, ranks, directory, [&] { watchdog.Alive(); });
    if (ranks.rank() != 0) return ExitCode::kDone;
    const std::string text = MinimalConfigText(measured);
    ReplaceFileDurably(file, text);
    fmt::print("{}", text);
    return ExitCode::kDone;
  });
}

void PlanHere(const Config& config, const ReportOptions& form) {
  const RunSizes sizes = RunSizesOf(config, form.ranks);
  const TimeEstimate time = EstimateTime(config, sizes);
  if (form.json) {
    PrintJson(sizes, time);
  } else {
    PrintText(sizes);
    PrintTime(time, form.ranks);
  }
}

}  // namespace

Action SetUpPlan(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  const auto cluster = AddClusterOptions(app);
  return [options, form, cluster] {
    if (!cluster->measured.empty()) return Measure(*options, cluster->measured);
    const bool sweeps = cluster->sweep || !cluster->svg.empty() || !cluster->models.empty();
    if (sweeps) {
      PredictSweep(*options, *cluster, form->json);
    } else if (cluster->nodes > 0) {
      PredictOne(options->Load(kForModel), *cluster, form->json);
    } else {
      PlanHere(options->Load(kForModel), *form);
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
