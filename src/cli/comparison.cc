// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/text.h"
#include "cli/curves_svg.h"
#include "cli/page.h"
#include "cli/text_table.h"

namespace syntra {
namespace {

// The spread of the values that are finite; NaN if there are none.
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
                    WithThousands(mixer.parameters), HumanCount(mixer.flops_per_step),
                    HumanBytes(mixer.planned_bytes)});
  }
  return rows;
}

std::string Caption(const Comparison& comparison) {
  return fmt::format(
      "{} steps, {}, {}. Log-perplexity on the validation split, in nats a token{}; "
      "memory of one rank, as planned.",
      WithThousands(comparison.steps), Counted(comparison.seeds, "seed"),
      Counted(comparison.ranks, "rank"),
      comparison.seeds == 1 ? "" : ", with its standard deviation over the seeds");
}

Json SpreadJson(const Spread& spread) {
  return {{"mean", spread.mean}, {"deviation", spread.deviation}};
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
                      {"parameters", mixer.parameters},
                      {"flops_per_step", mixer.flops_per_step},
                      {"planned_bytes", mixer.planned_bytes},
                      {"diverged", mixer.diverged},
                      {"curve", curve}});
  }
  return {{"steps", comparison.steps},
          {"seeds", comparison.seeds},
          {"ranks", comparison.ranks},
          {"mixers", mixers}};
}

std::string ComparisonPage(const Comparison& comparison) {
  std::string models;
  std::vector<NamedCurve> curves;
  for (const MixerResult& mixer : comparison.mixers) {
    models += HtmlElement("dt", mixer.name) + HtmlElement("dd", mixer.model) + "\n";
    curves.push_back({mixer.name, mixer.Curve()});
  }
  return HtmlPage(
      "Mixers compared",
      HtmlTable(TableOf(comparison)) + HtmlElement("p", Caption(comparison)) + "\n" +
          HtmlPicture(CurvesSvg(curves, "training steps", "validation log-perplexity")) + "<dl>\n" +
          models + "</dl>\n");
}

}  // namespace syntra
