// SPDX-License-Identifier: Apache-2.0
#include "cli/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "cli/pictures.h"
#include "cli/text_table.h"
#include "plan/cluster.h"
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

std::string Seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", 1e3 * seconds);
  return fmt::format("{:.3g} us", 1e6 * seconds);
}

std::string Rate(double bytes_per_second) {
  return fmt::format("{:.4g} GB/s", 1e-9 * bytes_per_second);
}

std::string LayoutText(const ScalingPoint& point) {
  const Layout& layout = point.layout;
  return fmt::format("{}, {} each", Counted(layout.nodes, "node"),
                     Counted(layout.ranks_per_node, point.cluster.has_gpus() ? "GPU" : "rank"));
}

std::string MemoryText(const ScalingPoint& point) {
  std::string text = HumanBytes(point.memory);
  if (point.cluster.memory == 0) return text;
  return text + (point.fits ? " of " : ", more than ") + HumanBytes(point.cluster.memory);
}

std::string LinkText(const std::string& name, const Link& link) {
  if (std::isinf(link.bandwidth)) return "";
  return fmt::format("; {}: {} and {}", name, Seconds(link.latency), Rate(link.bandwidth));
}

std::string FiguresText(const Cluster& cluster) {
  std::string text = fmt::format(
      "{}FLOP/s of a {}, memory {}", HumanCount(cluster.flops),
      cluster.has_gpus() ? "GPU" : fmt::format("core ({} a node)", cluster.cores_per_node),
      Rate(cluster.memory_bandwidth));
  text += LinkText("inside a node", cluster.inside);
  text += LinkText("between nodes (" + cluster.between_name + ")", cluster.between);
  if (cluster.has_gpus()) {
    text += fmt::format("; to start a sum {}; to the host {}", Seconds(cluster.start),
                        Rate(cluster.host_bandwidth));
  }
  return text + "; storage " + Rate(cluster.storage_bandwidth);
}

std::string Caveat(const Cluster& cluster) {
  std::string text = "These are predictions, not measurements. They follow from these figures: " +
                     FiguresText(cluster) + ".";
  if (!cluster.source.empty()) {
    text += " Where they come from: " + Printable(cluster.source) + ".";
  }
  text += " Data, evaluations and waiting for slow ranks are not counted.";
  std::string lines;
  for (const std::string& line : WrapText(text, 100)) lines += line + "\n";
  return lines;
}

// Log-scaled: 1, 2, 4 and so on lie as far apart as 1024 and 2048.
PlotPoint PlaceOf(const ScalingPoint& point) {
  return {std::log2(static_cast<double>(point.layout.ranks())), 100 * point.efficiency};
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

std::string PredictionText(const ScalingPoint& point) {
  std::string text =
      fmt::format("predicted on {}: {}\n", Printable(point.cluster.name), LayoutText(point));
  const auto line = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{:26} {:>14}\n", name, value);
  };
  const StepPrediction& step = point.step;
  line("  a step", Seconds(step.seconds()));
  line("    forward", Seconds(step.forward));
  line("    backward", Seconds(step.backward));
  line("    all-reduce not hidden", Seconds(step.exposed_sums));
  line("    update", Seconds(step.update));
  line("    all-gather not hidden", Seconds(step.exposed_gather));
  line("    loss, gradient norm", Seconds(step.small_numbers));
  line("  network busy", Seconds(step.sums + step.gather));
  line("  efficiency", fmt::format("{:.1f} %", 100 * point.efficiency));
  line("  examples a second", fmt::format("{:.4g}", point.rows_per_second));
  line(point.cluster.has_gpus() ? "  memory of a GPU" : "  memory of a node", MemoryText(point));
  line("  checkpoint written in", Seconds(point.save.write));
  line("  training waits for it", Seconds(point.save.stall));
  line("  the run", HumanDuration(point.cost.seconds));
  line(fmt::format("  {}-hours", point.unit()), fmt::format("{:.4g}", point.cost.unit_hours));
  if (point.cluster.price > 0) {
    line("  cost", fmt::format("{:.4g} ({:g} per {}-hour)", point.cost.money, point.cluster.price,
                               point.unit()));
  }
  return text + Caveat(point.cluster);
}

std::string SweepText(std::span<const ScalingPoint> points) {
  const bool has_price = points.front().cluster.price > 0;
  std::vector<TableRow> rows{{"model", "ranks", "nodes", "step", "exposed", "efficiency",
                              "examples/s", "memory", points.front().unit() + "-hours"}};
  if (has_price) rows.front().emplace_back("cost");
  for (const ScalingPoint& point : points) {
    rows.push_back({point.model, std::to_string(point.layout.ranks()),
                    std::to_string(point.layout.nodes), Seconds(point.step.seconds()),
                    Seconds(point.step.exposed()), fmt::format("{:.1f} %", 100 * point.efficiency),
                    fmt::format("{:.4g}", point.rows_per_second),
                    HumanBytes(point.memory) + (point.fits ? "" : " (too much)"),
                    fmt::format("{:.4g}", point.cost.unit_hours)});
    if (has_price) rows.back().push_back(fmt::format("{:.4g}", point.cost.money));
  }
  return TextTable(rows) +
         "Each rank has the same rows everywhere; all runs see the same examples.\n" +
         Caveat(points.front().cluster);
}

Json PredictionJson(const ScalingPoint& point) {
  const StepPrediction& step = point.step;
  return {{"model", point.model},
          {"nodes", point.layout.nodes},
          {"ranks_per_node", point.layout.ranks_per_node},
          {"ranks", point.layout.ranks()},
          {"sharded", point.plan->shards() > 1},
          {"step_seconds", step.seconds()},
          {"forward_seconds", step.forward},
          {"backward_seconds", step.backward},
          {"sum_seconds", step.sums},
          {"exposed_sum_seconds", step.exposed_sums},
          {"update_seconds", step.update},
          {"gather_seconds", step.gather},
          {"exposed_gather_seconds", step.exposed_gather},
          {"small_number_seconds", step.small_numbers},
          {"exposed_seconds", step.exposed()},
          {"efficiency", point.efficiency},
          {"examples_per_second", point.rows_per_second},
          {"memory_bytes", point.memory},
          {"fits", point.fits},
          {"checkpoint_bytes", point.plan->checkpoint_bytes()},
          {"checkpoint_write_seconds", point.save.write},
          {"checkpoint_stall_seconds", point.save.stall},
          {"saves", point.saves},
          {"run_seconds", point.cost.seconds},
          {point.cluster.has_gpus() ? "gpu_hours" : "core_hours", point.cost.unit_hours},
          {"cost", point.cluster.price > 0 ? Json(point.cost.money) : Json()}};
}

Json ClusterJson(const Cluster& cluster) {
  const auto link = [](const Link& figures) -> Json {
    if (std::isinf(figures.bandwidth)) return nullptr;
    return {{"latency_seconds", figures.latency}, {"bytes_per_second", figures.bandwidth}};
  };
  return {{"name", cluster.name},
          {"source", cluster.source},
          {"cores_per_node", cluster.cores_per_node},
          {"flops", cluster.flops},
          {"memory_bytes_per_second", cluster.memory_bandwidth},
          {"memory_bytes", cluster.memory},
          {"inside_node", link(cluster.inside)},
          {"between_nodes", link(cluster.between)},
          {"link", cluster.between_name},
          {"collective_seconds", cluster.start},
          {"host_bytes_per_second", cluster.host_bandwidth},
          {"storage_bytes_per_second", cluster.storage_bandwidth},
          {"price_per_hour", cluster.price}};
}

std::string EfficiencySvg(std::span<const ScalingPoint> points) {
  std::vector<NamedCurve> curves;
  for (const ScalingPoint& point : points) {
    if (curves.empty() || curves.back().name != point.model) curves.push_back({point.model, {}});
    if (point.fits) curves.back().points.push_back(PlaceOf(point));
  }
  std::erase_if(curves, [](const NamedCurve& curve) { return curve.points.empty(); });
  const std::string ranks = points.front().cluster.has_gpus() ? "GPUs" : "ranks";
  return CurvesSvg(curves, ranks + " of " + points.front().cluster.name,
                   "efficiency, predicted (%)", AxisKind::kPowersOfTwo);
}

}  // namespace syntra
