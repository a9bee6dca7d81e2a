// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/text.h"
#include "cli/curves_svg.h"
#include "cli/text_table.h"

namespace syntra {
namespace {

// Of the values that are finite; NaN if there are none.
Spread SpreadOfFinite(std::span<const RunHistory> histories,
                      const std::function<double(const RunHistory&)>& value_of) {
  std::vector<double> values;
  for (const RunHistory& history : histories) {
    const double value = value_of(history);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? Spread{NAN, NAN} : SpreadOf(values);
}

double RelativeSpeed(const Comparison& comparison, const MixerResult& mixer) {
  return mixer.StepsPerSecond().mean / comparison.mixers.front().StepsPerSecond().mean;
}

std::string LogPerplexityCell(const Comparison& comparison, const MixerResult& mixer) {
  const Spread spread = mixer.LogPerplexity();
  std::string text = std::isfinite(spread.mean) ? fmt::format("{:.3f}", spread.mean) : "-";
  if (std::isfinite(spread.mean) && comparison.seeds > 1) {
    text += fmt::format("±{:.3f}", spread.deviation);
  }
  if (mixer.diverged == 0) return text;
  return fmt::format("{} ({} of {} diverged)", text, mixer.diverged, comparison.seeds);
}

std::string Number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::vector<TableRow> TableOf(const Comparison& comparison) {
  std::vector<TableRow> rows = {{"mixer", "log-perplexity", "steps/s",
                                 "relative to " + comparison.mixers.front().name, "parameters",
                                 "FLOPs/step", "memory"}};
  for (const MixerResult& mixer : comparison.mixers) {
    rows.push_back({mixer.name, LogPerplexityCell(comparison, mixer),
                    Number("{:.3g}", mixer.StepsPerSecond().mean),
                    Number("{:.2f}", RelativeSpeed(comparison, mixer)),
                    WithThousands(mixer.sizes.parameters), HumanCount(mixer.sizes.flops_per_step),
                    HumanBytes(mixer.sizes.total_bytes())});
  }
  return rows;
}

std::string Caption(const Comparison& comparison) {
  return fmt::format(
      "{} steps, {} seed{}, {} rank{}. Log-perplexity on the validation split, in nats a token{}; "
      "memory of one rank, as planned.",
      WithThousands(comparison.steps), comparison.seeds, comparison.seeds == 1 ? "" : "s",
      comparison.ranks, comparison.ranks == 1 ? "" : "s",
      comparison.seeds == 1 ? "" : ", with its standard deviation over the seeds");
}

Json SpreadJson(const Spread& spread) {
  return {{"mean", spread.mean}, {"deviation", spread.deviation}};
}

std::string HtmlRow(const TableRow& row, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : row) text += fmt::format("<{0}>{1}</{0}>", tag, XmlText(cell));
  return text + "</tr>\n";
}

}  // namespace

Spread MixerResult::LogPerplexity() const {
  return SpreadOfFinite(histories, [](const RunHistory& history) {
    return history.validation.empty() ? NAN : history.validation.back().y;
  });
}

Spread MixerResult::StepsPerSecond() const {
  return SpreadOfFinite(histories, [](const RunHistory& history) {
    return static_cast<double>(history.loss.size()) / history.seconds;
  });
}

std::vector<PlotPoint> MixerResult::Curve() const {
  std::map<double, std::vector<double>> values;
  for (const RunHistory& history : histories) {
    for (const PlotPoint& point : history.validation) {
      if (point.x > 0) values[point.x].push_back(point.y);
    }
  }
  std::vector<PlotPoint> curve;
  for (const auto& [step, of_step] : values) {
    // A step that a run did not evaluate would bend the mean.
    if (of_step.size() == histories.size()) curve.push_back({step, SpreadOf(of_step).mean});
  }
  return curve;
}

std::string ComparisonText(const Comparison& comparison) {
  return TextTable(TableOf(comparison)) + Caption(comparison) + "\n";
}

Json ComparisonJson(const Comparison& comparison) {
  Json mixers = Json::array();
  for (const MixerResult& mixer : comparison.mixers) {
    Json curve = Json::array();
    for (const PlotPoint& point : mixer.Curve()) {
      curve.push_back({{"step", std::llround(point.x)}, {"log_perplexity", point.y}});
    }
    mixers.push_back({{"name", mixer.name},
                      {"model", mixer.model},
                      {"log_perplexity", SpreadJson(mixer.LogPerplexity())},
                      {"steps_per_second", SpreadJson(mixer.StepsPerSecond())},
                      {"relative_speed", RelativeSpeed(comparison, mixer)},
                      {"parameters", mixer.sizes.parameters},
                      {"flops_per_step", mixer.sizes.flops_per_step},
                      {"planned_bytes", mixer.sizes.total_bytes()},
                      {"diverged", mixer.diverged},
                      {"curve", curve}});
  }
  return {{"steps", comparison.steps},
          {"seeds", comparison.seeds},
          {"ranks", comparison.ranks},
          {"mixers", mixers}};
}

std::string ComparisonPage(const Comparison& comparison) {
  const std::vector<TableRow> rows = TableOf(comparison);
  std::string table = HtmlRow(rows.front(), "th");
  for (const TableRow& row : std::span(rows).subspan(1)) table += HtmlRow(row, "td");
  std::string models;
  std::vector<NamedCurve> curves;
  for (const MixerResult& mixer : comparison.mixers) {
    models += fmt::format("<dt>{}</dt><dd>{}</dd>\n", XmlText(mixer.name), XmlText(mixer.model));
    curves.push_back({mixer.name, mixer.Curve()});
  }
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Mixers compared</title>
<style>
body {{ font-family: sans-serif; margin: 2em; max-width: 60em; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.3em 0.8em; border-bottom: 1px solid #dddddd; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
</style>
</head>
<body>
<h1>Mixers compared</h1>
<table>
{}</table>
<p>{}</p>
{}<dl>
{}</dl>
</body>
</html>
)",
      table, XmlText(Caption(comparison)),
      CurvesSvg(curves, "training steps", "validation log-perplexity"), models);
}

}  // namespace syntra
