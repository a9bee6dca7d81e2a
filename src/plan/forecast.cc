// SPDX-License-Identifier: Apache-2.0
#include "plan/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/cluster.h"
#include "plan/memory_needs.h"
#include "plan/partition.h"
#include "plan/step_work.h"

namespace syntra {
namespace {

// Sums in EXACT's order are taken by the hosts (ChooseCommunicator in src/cli/training.cc).
void CheckSumsAreKnown(const Config& config, const Cluster& cluster, const Layout& layout) {
  if (!cluster.has_gpus() || layout.ranks() == 1) return;
  if (config.train().reduction() != TrainConfig::EXACT) return;
  Fail(ExitCode::kConfig,
       "train.reduction EXACT takes the sums of GPUs through their hosts, for which a cluster has "
       "no figures; use FAST here");
}

// The first and the last step are saved, too.
int64_t SavesOf(const Config& config) {
  const int64_t every = config.checkpoint().every();
  return 2 + (every > 0 ? (config.train().steps() - 1) / every : 0);
}

// Steps between two saves.
double StepsBetween(const Config& config) {
  const int64_t steps = config.train().steps(), every = config.checkpoint().every();
  return static_cast<double>(every > 0 ? std::min(every, steps) : steps);
}

// 1, 2, 4, ... ranks of one node, then 2, 4, ... nodes, up to `largest`.
std::vector<Layout> LayoutsUpTo(const Layout& largest) {
  std::vector<Layout> layouts;
  for (int ranks = 1; ranks < largest.ranks_per_node; ranks *= 2) layouts.push_back({1, ranks});
  for (int nodes = 1; nodes < largest.nodes; nodes *= 2) {
    layouts.push_back({nodes, largest.ranks_per_node});
  }
  layouts.push_back(largest);
  return layouts;
}

}  // namespace

RunForecast ForecastOn(const Config& config, const Layout& layout, const std::string& link) {
  const int ranks = static_cast<int>(layout.ranks());
  BatchPartition::Of(config.train(), ranks);  // before anything that takes longer
  RunForecast forecast{
      .layout = layout,
      .cluster = ClusterOf(config.cluster(), config.train().precision(), link, layout)};
  CheckSumsAreKnown(config, forecast.cluster, layout);
  const bool gpus = forecast.cluster.has_gpus();
  forecast.plan = TrainingPlan::Make(
      config, {.ranks = ranks, .bucket_elements = BucketElements(config.train(), ranks, !gpus)});
  const StepWork work = StepWorkOf(*forecast.plan);
  forecast.step = PredictStep(work, forecast.cluster, layout);
  const double seconds = forecast.step.seconds();
  forecast.efficiency = Efficiency(work, forecast.cluster, layout);
  forecast.rows_per_second = config.train().batch_size() / seconds;
  forecast.save = PredictCheckpoint(work, forecast.cluster, layout, seconds * StepsBetween(config));
  forecast.saves = SavesOf(config);
  forecast.cost = CostOf(forecast.cluster, layout,
                         seconds * static_cast<double>(config.train().steps()) +
                             forecast.save.stall * static_cast<double>(forecast.saves));
  forecast.memory =
      MemoryNeedsOn(*forecast.plan, gpus).total() * (gpus ? 1 : layout.ranks_per_node);
  forecast.fits = forecast.cluster.memory == 0 || forecast.memory <= forecast.cluster.memory;
  return forecast;
}

std::vector<RunForecast> ForecastsUpTo(const Config& config, const Layout& largest,
                                       const std::string& link) {
  const BatchPartition whole =
      BatchPartition::Of(config.train(), static_cast<int>(largest.ranks()));
  std::vector<RunForecast> forecasts;
  for (const Layout& layout : LayoutsUpTo(largest)) {
    Config same = config;
    const int64_t batch = whole.rows_per_rank * layout.ranks();
    const double longer = static_cast<double>(whole.batch_size) / static_cast<double>(batch);
    same.mutable_train()->set_batch_size(static_cast<int32_t>(batch));
    same.mutable_train()->set_micro_batch_size(static_cast<int32_t>(whole.micro_batch_rows));
    same.mutable_train()->set_steps(
        std::llround(longer * static_cast<double>(config.train().steps())));
    forecasts.push_back(ForecastOn(same, layout, link));
  }
  return forecasts;
}

}  // namespace syntra
