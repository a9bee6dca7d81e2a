// SPDX-License-Identifier: Apache-2.0
// syntra report: runs at a glance.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/curves_svg.h"
#include "config/config.h"
#include "train/describe.h"
#include "train/run_directory.h"
#include "train/run_history.h"
#include "train/run_status.h"

namespace syntra {
namespace {

struct Report {
  Path directory;
  Config config;
  RunHistory history;
  bool done = false;
};

Report ReadReport(const std::string& directory) {
  const RunDirectory run{directory};
  Report report{directory, {}, ReadRunHistory(run.metrics()), false};
  const Path file = run.root / "config.textproto";
  report.config = ParseConfig(file.string(), ReadWholeFile(file), {}, kForModel);
  report.done = RunStatus(run.root).IsDone(report.history.step);
  return report;
}

// The least of the curve's finite values; the first point if there is none.
PlotPoint Lowest(const std::vector<PlotPoint>& points) {
  return *std::ranges::min_element(
      points, {}, [](const PlotPoint& point) { return std::isnan(point.y) ? INFINITY : point.y; });
}

std::string AtStep(const PlotPoint& point) {
  return fmt::format("{:.4f} at step {}", point.y, WithThousands(std::llround(point.x)));
}

// "10.3820 at step 0, 5.7410 at step 400".
std::string FirstAndLast(const std::vector<PlotPoint>& points) {
  if (points.empty()) return "none yet";
  std::string text = AtStep(points.front());
  if (points.size() > 1) text += ", " + AtStep(points.back());
  const PlotPoint lowest = Lowest(points);
  if (lowest.y < points.back().y) text += ", lowest " + AtStep(lowest);
  return text;
}

std::string Throughput(const RunHistory& history) {
  if (history.loss.empty()) return "no step yet";
  std::string text = HumanCount(history.tokens_per_second) + " tokens/s";
  if (std::isfinite(history.mfu)) text += fmt::format(", MFU {:.1f}%", 100 * history.mfu);
  text += fmt::format("; {} in {} steps", HumanDuration(history.seconds),
                      WithThousands(static_cast<int64_t>(history.loss.size())));
  if (history.skipped > 0) text += fmt::format(", {} skipped", WithThousands(history.skipped));
  return text;
}

void PrintText(const Report& report, const PlotOptions& plot) {
  const RunHistory& history = report.history;
  fmt::print("{}: {} of {} steps{}\n", report.directory.string(), WithThousands(history.step),
             WithThousands(report.config.train().steps()), report.done ? ", done" : "");
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("  {:12} {}\n", name, value);
  };
  line("model", DescribeModel(report.config.model()));
  line("throughput", Throughput(history));
  line("training", FirstAndLast(history.loss));
  line("validation", FirstAndLast(history.validation));
  if (history.loss.empty() && history.validation.empty()) return;
  fmt::print("\nLog-perplexity against step: training {}, validation o\n\n{}",
             plot.braille ? "\u28c0\u2864\u2812\u2809" : "...",
             Plot(history.loss, history.validation, plot));
}

Json PointJson(const std::vector<PlotPoint>& points, size_t i) {
  if (points.empty()) return nullptr;
  return {{"step", std::llround(points[i].x)}, {"log_perplexity", points[i].y}};
}

Json CurveJson(const std::vector<PlotPoint>& points) {
  return {{"first", PointJson(points, 0)}, {"last", PointJson(points, points.size() - 1)}};
}

Json ReportJson(const Report& report) {
  const RunHistory& history = report.history;
  return {{"directory", report.directory.string()},
          {"model", DescribeModel(report.config.model())},
          {"step", history.step},
          {"steps", report.config.train().steps()},
          {"done", report.done},
          {"seconds", history.seconds},
          {"tokens_per_second", history.tokens_per_second},
          {"mfu", history.mfu},
          {"skipped", history.skipped},
          {"training", CurveJson(history.loss)},
          {"validation", CurveJson(history.validation)}};
}

// The same axes for all, so that the curves can be compared.
PlotOptions CommonAxes(const std::vector<Report>& reports) {
  std::vector<std::span<const PlotPoint>> series;
  for (const Report& report : reports) {
    series.push_back(report.history.loss);
    series.push_back(report.history.validation);
  }
  return {.columns = std::min(TerminalColumns(STDOUT_FILENO), 100) - 1,
          .braille = LocaleIsUtf8(),
          .x = RangeOf(series, &PlotPoint::x),
          .y = RangeOf(series, &PlotPoint::y)};
}

// The curves of validation log-perplexity; a run without validation shows its training's. The value
// before training is left out: on its scale all that comes later would be one line.
std::string PictureOf(const std::vector<Report>& reports) {
  std::vector<NamedCurve> curves;
  for (const Report& report : reports) {
    const RunHistory& history = report.history;
    NamedCurve curve{std::filesystem::absolute(report.directory / "").parent_path().filename(),
                     history.validation.empty() ? history.loss : history.validation};
    std::erase_if(curve.points, [](const PlotPoint& point) { return point.x == 0; });
    curves.push_back(std::move(curve));
  }
  return CurvesSvg(curves, "training steps", "validation log-perplexity");
}

}  // namespace

Action SetUpReport(CLI::App& app) {
  struct Options {
    std::vector<std::string> directories;
    bool json = false;
    std::string svg;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("directory", options->directories, "Run directories")
      ->required()
      ->type_name("DIR");
  app.add_flag("--json", options->json, "Print JSON");
  app.add_option("--svg", options->svg, "Write a picture of all curves to this file instead")
      ->type_name("FILE");
  return [options] {
    std::vector<Report> reports;
    for (const std::string& directory : options->directories) {
      reports.push_back(ReadReport(directory));
    }
    if (!options->svg.empty()) {
      ReplaceFileDurably(options->svg, PictureOf(reports));
      return ExitCode::kDone;
    }
    Json list = Json::array();
    const PlotOptions plot = CommonAxes(reports);
    for (size_t i = 0; i < reports.size(); ++i) {
      if (options->json) {
        list.push_back(ReportJson(reports[i]));
      } else {
        if (i > 0) fmt::print("\n");
        PrintText(reports[i], plot);
      }
    }
    if (options->json) fmt::print("{}\n", JsonText({{"runs", list}}));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
