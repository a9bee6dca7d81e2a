// SPDX-License-Identifier: Apache-2.0
#include "cli/scaling_points.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/cluster.h"
#include "plan/step_work.h"

namespace syntra {
namespace {

// Sums in EXACT's order are taken by the hosts (src/cli/communicator.h).
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

MemoryNeeds NeedsOn(const TrainingPlan& plan, bool gpus) {
  MemoryNeeds needs = plan.memory();
  if (gpus && plan.config().train().precision() == TrainConfig::BF16) {
    needs.rounded = RoundedBytes(plan.parameters().arena_elements());
  }
  return needs;
}

ScalingPoint PredictOn(const Config& config, const Layout& layout, const std::string& link) {
  const int ranks = static_cast<int>(layout.ranks());
  BatchPartition::Of(config.train(), ranks);  // before anything that takes longer
  ScalingPoint point{
      .layout = layout,
      .cluster = ClusterOf(config.cluster(), config.train().precision(), link, layout)};
  CheckSumsAreKnown(config, point.cluster, layout);
  const bool on_host = !point.cluster.has_gpus();
  point.plan = TrainingPlan::Make(
      config, {.ranks = ranks, .bucket_elements = BucketElements(config.train(), ranks, on_host)});
  const StepWork work = StepWorkOf(*point.plan);
  point.step = PredictStep(work, point.cluster, layout);
  const double seconds = point.step.seconds();
  point.efficiency = Efficiency(work, point.cluster, layout);
  point.rows_per_second = config.train().batch_size() / seconds;
  point.save = PredictCheckpoint(work, point.cluster, layout, seconds * StepsBetween(config));
  point.saves = SavesOf(config);
  point.cost = CostOf(point.cluster, layout,
                      seconds * static_cast<double>(config.train().steps()) +
                          point.save.stall * static_cast<double>(point.saves));
  const bool gpus = point.cluster.has_gpus();
  point.memory = NeedsOn(*point.plan, gpus).total() * (gpus ? 1 : layout.ranks_per_node);
  point.fits = point.cluster.memory == 0 || point.memory <= point.cluster.memory;
  return point;
}

std::vector<ScalingPoint> Sweep(const Config& config, const Layout& largest,
                                const std::string& link) {
  const BatchPartition whole =
      BatchPartition::Of(config.train(), static_cast<int>(largest.ranks()));
  std::vector<ScalingPoint> points;
  for (const Layout& layout : LayoutsUpTo(largest)) {
    Config same = config;
    const int64_t batch = whole.rows_per_rank * layout.ranks();
    const double longer = static_cast<double>(whole.batch_size) / static_cast<double>(batch);
    same.mutable_train()->set_batch_size(static_cast<int32_t>(batch));
    same.mutable_train()->set_micro_batch_size(static_cast<int32_t>(whole.micro_batch_rows));
    same.mutable_train()->set_steps(
        std::llround(longer * static_cast<double>(config.train().steps())));
    points.push_back(PredictOn(same, layout, link));
  }
  return points;
}

}  // namespace syntra
