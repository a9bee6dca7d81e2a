// SPDX-License-Identifier: Apache-2.0
// syntra plan: what a run takes, here or (--nodes) on a cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/forecast_report.h"
#include "cli/measure_cluster.h"
#include "cli/plan_report.h"
#include "cli/ranks.h"
#include "cli/run_config.h"
#include "config/print.h"
#include "core/thread.h"
#include "kernels/cpu/peak.h"
#include "kernels/cuda.h"
#include "plan/fits.h"
#include "plan/forecast.h"
#include "plan/training_plan.h"
#include "train/run_directory.h"
#include "train/threads.h"

namespace syntra {
namespace {

// The time that a step may take on this machine.
struct TimeEstimate {
  double peak = NAN;  // FLOP/s of all threads together, measured now; NaN: not known
  double share = 0;   // of the peak
  double step = NAN;  // seconds
  double run = NAN;   // seconds of all steps, without evaluations and checkpoints
  const char* unknown_because = "the peak of this processor is not known";
};

// Whether the run would compute on a GPU. One that it asks for need not be here.
bool UsesGpu(const TrainConfig& train) {
  return train.device() == TrainConfig::CUDA ||
         (train.device() == TrainConfig::AUTO && FindGpus().count > 0);
}

// The time of a step's FLOPs at the share of the peak that the training step of a 60 M model
// reached (tests/bench/cpu.md).
TimeEstimate EstimateTime(const TrainingPlan& plan, bool on_gpu) {
  TimeEstimate estimate;
  const TrainConfig& train = plan.config().train();
  if (on_gpu) {
    estimate.unknown_because = "the speed of this GPU is not known";
    return estimate;
  }
  ChooseThreads(train);
  const DType type = plan.planned_model().activations();
  estimate.peak = CpuBackend().PeakFlops(type);
  estimate.share = UsualShareOfPeak(type);
  const double flops = plan.flops_per_step() + plan.recomputed_flops_per_step();
  estimate.step = flops / (estimate.share * estimate.peak);
  estimate.run = estimate.step * static_cast<double>(train.steps());
  return estimate;
}

struct FitHere {
  bool fits;
  std::string text;  // what a rank needs of this machine's memory, or why that is too much
};

// Nothing for a GPU: the planned one need not be in this machine.
std::optional<FitHere> FindFit(const TrainingPlan& plan, bool on_gpu) {
  if (on_gpu) return std::nullopt;
  try {
    return FitHere{true, CheckFits(plan)};
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    return FitHere{false, error.what()};
  }
}

// "0.12 s", "320 s", "1h12m": two digits of an estimate.
std::string SecondsText(double seconds) {
  if (seconds >= 1000) return HumanDuration(seconds);
  return seconds >= 100 ? fmt::format("{:.0f} s", 10 * std::round(seconds / 10))
                        : fmt::format("{:.2g} s", seconds);
}

void PrintTime(const TimeEstimate& estimate, const TrainConfig& train, int ranks) {
  if (std::isnan(estimate.step)) {
    fmt::print(
        "time of a step: no estimate, as {}; syntra bench measures it, and --nodes predicts it "
        "with the figures of a cluster, e.g. configs/clusters/h200.textproto\n",
        estimate.unknown_because);
    return;
  }
  fmt::print("{:22} {:>18}\n", "time of a step", "about " + SecondsText(estimate.step));
  fmt::print("{:22} {:>18}, {} of {}\n", "time of the run", "about " + HumanDuration(estimate.run),
             Counted(train.steps(), "step"), Counted(train.batch_size(), "example"));
  if (ranks > 1) {
    fmt::print("{:22} {:>18}, each on a machine like this one\n",
               fmt::format("  with {} ranks", ranks),
               "about " + HumanDuration(estimate.run / ranks));
  }
  fmt::print(
      "The times are estimates: {:.0f} % of the {} that {} of this machine "
      "can reach now.\nA model of 60 M parameters reached about that share; small ones reach less. "
      "Evaluations, checkpoints\nand communication are not counted. To measure a step: syntra "
      "bench\n",
      100 * estimate.share, HumanFlops(estimate.peak), Counted(ThreadCount(), "thread"));
}

void PrintJson(const TrainingPlan& plan, bool on_gpu, const TimeEstimate& time, bool ops) {
  Json all = PlanJson(plan, on_gpu);
  const auto fit = FindFit(plan, on_gpu);
  all["fits"] = fit ? Json(fit->fits) : Json();
  if (ops) all["ops"] = PlannedOpsJson(plan);
  all["estimated_step_seconds"] = time.step;
  all["estimated_run_seconds"] = time.run;
  all["peak_flops"] = time.peak;
  all["assumed_share_of_peak"] = time.share;
  fmt::print("{}\n", JsonText(all));
}

ExitCode Measure(const ModelOptions& options, const Path& file) {
  return WithRanks("plan", [&](Communicator& ranks, Watchdog& watchdog) {
    const Config config = LoadForModel(options);
    RequirePlaceForFile(file);
    const Path directory = file.has_parent_path() ? file.parent_path() : ".";
    Config measured;
    *measured.mutable_cluster() =
        MeasureCluster(config, ranks, directory, [&] { watchdog.Alive(); });
    if (ranks.rank() != 0) return ExitCode::kDone;
    const std::string text = MinimalConfigText(measured);
    WriteChosenFile(file, text);
    fmt::print("{}", text);
    return ExitCode::kDone;
  });
}

void PlanHere(const Config& config, const ReportOptions& form, bool ops) {
  const auto plan = TrainingPlan::Make(config, {.ranks = form.ranks});
  const bool on_gpu = UsesGpu(config.train());
  const TimeEstimate time = EstimateTime(*plan, on_gpu);
  if (form.json) {
    PrintJson(*plan, on_gpu, time, ops);
  } else {
    PrintPlan(*plan, on_gpu);
    const auto fit = FindFit(*plan, on_gpu);
    if (fit) fmt::print("{}: {}\n", fit->fits ? "fits" : "does not fit", fit->text);
    PrintTime(time, config.train(), form.ranks);
    if (ops) PrintPlannedOps(*plan);
  }
}

// Where ranks would run, by --nodes.
struct ClusterOptions {
  int nodes = 0;  // 0: not asked for
  int gpus_per_node = 0, ranks_per_node = 0;
  std::string link;
  bool sweep = false;
  std::vector<std::string> models;
  std::string svg;

  Layout layout() const { return {nodes, std::max({1, gpus_per_node, ranks_per_node})}; }
};

constexpr int kMostRanks = 4096;

// The configurations to predict, each with what its curve is called.
std::vector<std::pair<std::string, Config>> LoadModels(const ModelOptions& common,
                                                       const ClusterOptions& options) {
  std::vector<std::pair<std::string, Config>> list;
  if (options.models.empty()) list.emplace_back("", LoadForModel(common));
  const ConfigOptions& config = *common.config;
  for (const std::string& model : options.models) {
    std::vector<std::string> files{ConfigFileAt(model)};
    std::ranges::copy(config.Files(), std::back_inserter(files));
    list.emplace_back(IsDirectory(model) ? RunDirectory{model}.name() : Path(model).stem().string(),
                      LoadConfig(files, config.overrides, kForModel));
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
std::vector<RunForecast> SweepOf(const std::string& name, Config config,
                                 const ClusterOptions& options) {
  std::vector<RunForecast> all;
  const auto add = [&](const std::string& called) {
    for (RunForecast& forecast : ForecastsUpTo(config, options.layout(), options.link)) {
      forecast.model = called;
      all.push_back(std::move(forecast));
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

void PrintSweep(const std::vector<RunForecast>& forecasts, bool json) {
  if (!json) return fmt::print("{}", SweepText(forecasts));
  Json list = Json::array();
  for (const RunForecast& forecast : forecasts) list.push_back(ForecastJson(forecast));
  fmt::print("{}\n",
             JsonText({{"cluster", ClusterJson(forecasts.front().cluster)}, {"sweep", list}}));
}

void PredictSweep(const ModelOptions& common, const ClusterOptions& options, bool json) {
  std::vector<RunForecast> forecasts;
  for (const auto& [name, loaded] : LoadModels(common, options)) {
    CheckLayout(loaded.cluster(), options);
    std::ranges::move(SweepOf(name, loaded, options), std::back_inserter(forecasts));
  }
  if (!options.svg.empty()) WriteChosenFile(options.svg, EfficiencySvg(forecasts));
  PrintSweep(forecasts, json);
}

void PredictOne(const Config& config, const ClusterOptions& options, bool json) {
  CheckLayout(config.cluster(), options);
  const RunForecast forecast = ForecastOn(config, options.layout(), options.link);
  if (json) {
    Json all = PlanJson(*forecast.plan, forecast.cluster.has_gpus());
    all["cluster"] = ClusterJson(forecast.cluster);
    all["prediction"] = ForecastJson(forecast);
    fmt::print("{}\n", JsonText(all));
  } else {
    PrintPlan(*forecast.plan, forecast.cluster.has_gpus());
    fmt::print("{}", ForecastText(forecast));
  }
}

// Adds --nodes and the options that need it.
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
                 "Configuration of a model to compare, or a run directory, read before the other "
                 "files"))
      ->excludes("--init-from")
      ->type_name("FILE");
  add("--svg", options->svg,
      "Write a picture of each model's efficiency in the sweep, with and without train.sharding, "
      "to this file")
      ->type_name("FILE");
  return options;
}

// Prints the prediction, or those of a sweep or of several models.
void PredictOnCluster(const ModelOptions& common, const ClusterOptions& options, bool json) {
  const bool is_one = !options.sweep && options.svg.empty() && options.models.empty();
  is_one ? PredictOne(LoadForModel(common), options, json) : PredictSweep(common, options, json);
}

}  // namespace

Action SetUpPlan(CLI::App& app) {
  const auto options = AddModelOptions(app);
  const auto form = AddReportOptions(app);
  const auto cluster = AddClusterOptions(app);
  const auto measured = std::make_shared<std::string>();
  app.add_option("--measure", *measured,
                 "Measure this machine with the ranks that run this command, and write its figures "
                 "to this file, for use as a cluster")
      ->type_name("FILE")
      ->excludes("--nodes")
      ->excludes("--ranks")
      ->excludes("--json");
  const auto ops = std::make_shared<bool>(false);
  app.add_flag("--ops", *ops, "Also list the ops of a step with their FLOPs and bytes")
      ->excludes("--nodes")
      ->excludes("--measure");
  return [options, form, cluster, measured, ops] {
    if (!measured->empty()) return Measure(*options, *measured);
    return OnRankZero("syntra plan", [&] {
      if (cluster->nodes > 0) {
        PredictOnCluster(*options, *cluster, form->json);
      } else {
        PlanHere(LoadForModel(*options), *form, *ops);
      }
      return ExitCode::kDone;
    });
  };
}

}  // namespace syntra
