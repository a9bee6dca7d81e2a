// SPDX-License-Identifier: Apache-2.0
// syntra report: runs at a glance.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/report_page.h"
#include "train/continuation.h"
#include "train/describe.h"

namespace syntra {
namespace {

// Prints the model's last outputs for the validation examples.
void PrintSamples(const RunReport& report, size_t columns) {
  constexpr size_t kLabel = 10;  // columns
  columns = std::max(columns, kLabel + 1);
  for (const SampleLine& sample : LastSamples(report)) {
    fmt::print("\nValidation example {} at step {}:\n", WithThousands(sample.example),
               WithThousands(sample.step));
    for (const auto& [name, text] :
         {std::pair{"input", &sample.input}, std::pair{"target", &sample.target},
          std::pair{"output", &sample.output}}) {
      const char* label = name;
      for (const std::string& line : WrapText(Printable(*text), columns - kLabel)) {
        fmt::print("  {:7} {}\n", std::exchange(label, ""), line);
      }
    }
  }
}

void PrintText(const RunReport& report, const PlotOptions& plot) {
  const RunHistory& history = report.history;
  fmt::print("{}: {} of {} steps{}\n", Printable(report.directory.string()),
             WithThousands(history.step), WithThousands(report.config.train().steps()),
             report.done ? ", done" : "");
  NamedTexts fields{{"model", DescribeModel(report.config.model())},
                    {"throughput", DescribeThroughput(history)},
                    {"steps", DescribePhases(history)},
                    {"schedule", OtherRates(history, report.config)},
                    {"goodput", report.goodput ? Describe(*report.goodput) : ""},
                    {"training", DescribeCurve(history.loss)}};
  std::ranges::copy(DescribeEvaluations(history), std::back_inserter(fields));
  for (const std::string& line : FieldLines(fields)) fmt::print("{}\n", line);
  const std::string_view dots = plot.braille ? "\u28c0\u2864\u2812\u2809" : "...";
  std::vector<std::string> curves;
  if (!history.loss.empty()) curves.push_back(fmt::format("training {}", dots));
  if (!history.validation.empty()) curves.push_back("validation o");
  if (curves.empty()) return;
  fmt::print("\nLog-perplexity against step: {}\n\n{}", Join(curves, ", "),
             Plot(history.loss, history.validation, plot));
  PrintSamples(report, static_cast<size_t>(plot.columns));
}

// One pair of axes for all runs, so that their curves can be compared.
PlotOptions CommonAxes(const std::vector<RunReport>& reports) {
  std::vector<std::span<const PlotPoint>> series;
  for (const RunReport& report : reports) {
    series.push_back(report.history.loss);
    series.push_back(report.history.validation);
  }
  return {.columns = std::min(TerminalColumns(STDOUT_FILENO), 100) - 1,
          .braille = LocaleIsUtf8(),
          .x = RangeOf(series, &PlotPoint::x),
          .y = RangeOf(series, &PlotPoint::y)};
}

void PrintAll(const std::vector<RunReport>& reports) {
  const PlotOptions plot = CommonAxes(reports);
  for (const RunReport& report : reports) {
    if (&report != &reports.front()) fmt::print("\n");
    PrintText(report, plot);
  }
}

void PrintJson(const std::vector<RunReport>& reports) {
  Json list = Json::array();
  for (const RunReport& report : reports) list.push_back(ReportJson(report));
  fmt::print("{}\n", JsonText({{"runs", list}}));
}

}  // namespace

Action SetUpReport(CLI::App& app) {
  struct Options {
    std::vector<std::string> directories;
    bool json = false;
    std::string html, svg, picture = "validation";
  };
  const auto options = std::make_shared<Options>();
  app.add_option("directory", options->directories, "Run directories")
      ->required()
      ->type_name("DIR");
  auto* json = app.add_flag("--json", options->json, "Print JSON");
  app.add_option(
         "--html", options->html,
         "Write a web page to this file instead: all curves in one picture, phases of steps, where "
         "the time went, events, samples, differences between the configurations")
      ->type_name("FILE")
      ->excludes(json);
  auto* svg =
      app.add_option("--svg", options->svg, "Write one of the page's pictures to this file instead")
          ->type_name("FILE")
          ->excludes(json);
  app.add_option("--picture", options->picture,
                 "Picture that --svg writes: " + Join(PictureNames(), ", ") +
                     ", or a metric of a task, e.g. cola/matthews")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(svg);
  return [options] {
    const std::vector<RunReport> reports = ReadRunReports(options->directories);
    if (!options->svg.empty()) {
      WriteChosenFile(options->svg, ReportPicture(reports, options->picture));
    }
    if (!options->html.empty()) WriteChosenFile(options->html, ReportPage(reports));
    if (!options->svg.empty() || !options->html.empty()) return ExitCode::kDone;
    options->json ? PrintJson(reports) : PrintAll(reports);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
