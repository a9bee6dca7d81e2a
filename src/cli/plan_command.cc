// SPDX-License-Identifier: Apache-2.0
// syntra plan
#include <CLI/CLI.hpp>
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/measure_cluster.h"
#include "cli/plan_cluster.h"
#include "cli/plan_report.h"
#include "cli/ranks.h"
#include "cli/report_options.h"
#include "cli/run_config.h"
#include "config/print.h"
#include "core/thread.h"
#include "kernels/cpu/peak.h"
#include "kernels/cuda.h"
#include "plan/training_plan.h"
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
// reached, see "Measured" in README.md.
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

// "0.12 s", "320 s", "1h12m": two digits of an estimate.
std::string SecondsText(double seconds) {
  if (seconds >= 1000) return HumanDuration(seconds);
  return seconds >= 100 ? fmt::format("{:.0f} s", 10 * std::round(seconds / 10))
                        : fmt::format("{:.2g} s", seconds);
}

void PrintTime(const TimeEstimate& estimate, int ranks) {
  if (std::isnan(estimate.step)) {
    fmt::print(
        "time of a step: no estimate, as {}; syntra bench measures it, and --nodes predicts it "
        "with the figures of a cluster, e.g. configs/clusters/h200.textproto\n",
        estimate.unknown_because);
    return;
  }
  fmt::print("{:22} {:>18}\n", "time of a step", "about " + SecondsText(estimate.step));
  fmt::print("{:22} {:>18}\n", "time of the run", "about " + HumanDuration(estimate.run));
  if (ranks > 1) {
    fmt::print("{:22} {:>18}, each on a machine like this one\n",
               fmt::format("  with {} ranks", ranks),
               "about " + HumanDuration(estimate.run / ranks));
  }
  fmt::print(
      "The times are estimates: {:.0f} % of the {:.0f} GFLOP/s that {} of this machine "
      "can reach now.\nA model of 60 M parameters reached about that share; small ones reach less. "
      "Evaluations, checkpoints\nand communication are not counted. To measure a step: syntra "
      "bench\n",
      100 * estimate.share, 1e-9 * estimate.peak, Counted(ThreadCount(), "thread"));
}

void PrintJson(const TrainingPlan& plan, bool on_gpu, const TimeEstimate& time, bool ops) {
  Json all = PlanJson(plan, on_gpu);
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
    PrintTime(time, form.ranks);
    if (ops) PrintPlannedOps(*plan);
  }
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
    if (cluster->nodes > 0) {
      PredictOnCluster(*options, *cluster, form->json);
    } else {
      PlanHere(LoadForModel(*options), *form, *ops);
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
