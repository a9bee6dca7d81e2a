// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "cli/pictures.h"
#include "cli/text_table.h"

namespace syntra {
namespace {

std::string Seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", 1e3 * seconds);
  return fmt::format("{:.3g} us", 1e6 * seconds);
}

std::string Rate(double bytes_per_second) {
  return fmt::format("{:.4g} GB/s", 1e-9 * bytes_per_second);
}

std::string LayoutText(const RunForecast& forecast) {
  const Layout& layout = forecast.layout;
  return fmt::format("{}, {} each", Counted(layout.nodes, "node"),
                     Counted(layout.ranks_per_node, forecast.cluster.has_gpus() ? "GPU" : "rank"));
}

std::string MemoryText(const RunForecast& forecast) {
  std::string text = HumanBytes(forecast.memory);
  if (forecast.cluster.memory == 0) return text;
  return text + (forecast.fits ? " of " : ", more than ") + HumanBytes(forecast.cluster.memory);
}

std::string LinkText(const std::string& name, const Link& link) {
  if (std::isinf(link.bandwidth)) return "";
  return fmt::format("; {}: {} and {}", name, Seconds(link.latency), Rate(link.bandwidth));
}

std::string FiguresText(const Cluster& cluster) {
  std::string text = fmt::format(
      "{} of a {}, memory {}", HumanFlops(cluster.flops),
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
PlotPoint PlaceOf(const RunForecast& forecast) {
  return {std::log2(static_cast<double>(forecast.layout.ranks())), 100 * forecast.efficiency};
}

}  // namespace

std::string ForecastText(const RunForecast& forecast) {
  std::string text =
      fmt::format("predicted on {}: {}\n", Printable(forecast.cluster.name), LayoutText(forecast));
  const auto line = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{:26} {:>14}\n", name, value);
  };
  const StepPrediction& step = forecast.step;
  line("  a step", Seconds(step.seconds()));
  line("    forward", Seconds(step.forward));
  line("    backward", Seconds(step.backward));
  line("    all-reduce not hidden", Seconds(step.exposed_sums));
  line("    update", Seconds(step.update));
  line("    all-gather not hidden", Seconds(step.exposed_gather));
  line("    loss, gradient norm", Seconds(step.small_numbers));
  line("  network busy", Seconds(step.sums + step.gather));
  line("  efficiency", fmt::format("{:.1f} %", 100 * forecast.efficiency));
  line("  examples a second", fmt::format("{:.4g}", forecast.rows_per_second));
  line(forecast.cluster.has_gpus() ? "  memory of a GPU" : "  memory of a node",
       MemoryText(forecast));
  line("  checkpoint written in", Seconds(forecast.save.write));
  line("  training waits for it", Seconds(forecast.save.stall));
  line("  the run", HumanDuration(forecast.cost.seconds));
  line(fmt::format("  {}-hours", forecast.unit()), fmt::format("{:.4g}", forecast.cost.unit_hours));
  if (forecast.cluster.price > 0) {
    line("  cost", fmt::format("{:.4g} ({:g} per {}-hour)", forecast.cost.money,
                               forecast.cluster.price, forecast.unit()));
  }
  return text + Caveat(forecast.cluster);
}

std::string SweepText(std::span<const RunForecast> forecasts) {
  const bool has_price = forecasts.front().cluster.price > 0;
  std::vector<TableRow> rows{{"model", "ranks", "nodes", "step", "exposed", "efficiency",
                              "examples/s", "memory", forecasts.front().unit() + "-hours"}};
  if (has_price) rows.front().emplace_back("cost");
  for (const RunForecast& forecast : forecasts) {
    rows.push_back({forecast.model, std::to_string(forecast.layout.ranks()),
                    std::to_string(forecast.layout.nodes), Seconds(forecast.step.seconds()),
                    Seconds(forecast.step.exposed()),
                    fmt::format("{:.1f} %", 100 * forecast.efficiency),
                    fmt::format("{:.4g}", forecast.rows_per_second),
                    HumanBytes(forecast.memory) + (forecast.fits ? "" : " (too much)"),
                    fmt::format("{:.4g}", forecast.cost.unit_hours)});
    if (has_price) rows.back().push_back(fmt::format("{:.4g}", forecast.cost.money));
  }
  return TextTable(rows) +
         "Each rank has the same rows everywhere; all runs see the same examples.\n" +
         Caveat(forecasts.front().cluster);
}

Json ForecastJson(const RunForecast& forecast) {
  const StepPrediction& step = forecast.step;
  return {{"model", forecast.model},
          {"nodes", forecast.layout.nodes},
          {"ranks_per_node", forecast.layout.ranks_per_node},
          {"ranks", forecast.layout.ranks()},
          {"sharded", forecast.plan->shards() > 1},
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
          {"efficiency", forecast.efficiency},
          {"examples_per_second", forecast.rows_per_second},
          {"memory_bytes", forecast.memory},
          {"fits", forecast.fits},
          {"checkpoint_bytes", forecast.plan->checkpoint_bytes()},
          {"checkpoint_write_seconds", forecast.save.write},
          {"checkpoint_stall_seconds", forecast.save.stall},
          {"saves", forecast.saves},
          {"run_seconds", forecast.cost.seconds},
          {forecast.cluster.has_gpus() ? "gpu_hours" : "core_hours", forecast.cost.unit_hours},
          {"cost", forecast.cluster.price > 0 ? Json(forecast.cost.money) : Json()}};
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

std::string EfficiencySvg(std::span<const RunForecast> forecasts) {
  std::vector<NamedCurve> curves;
  for (const RunForecast& forecast : forecasts) {
    if (curves.empty() || curves.back().name != forecast.model) {
      curves.push_back({forecast.model, {}});
    }
    if (forecast.fits) curves.back().points.push_back(PlaceOf(forecast));
  }
  std::erase_if(curves, [](const NamedCurve& curve) { return curve.points.empty(); });
  const std::string ranks = forecasts.front().cluster.has_gpus() ? "GPUs" : "ranks";
  return CurvesSvg(curves, ranks + " of " + forecasts.front().cluster.name,
                   "efficiency, predicted (%)", AxisKind::kPowersOfTwo);
}

}  // namespace syntra
