// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "cli/page.h"
#include "cli/pictures.h"
#include "cli/results_table.h"
#include "cli/text_table.h"

namespace syntra {
namespace {

constexpr char kLogPerplexity[] = "validation log-perplexity";

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
  if (!std::isfinite(spread.mean)) return "-";
  if (comparison.seeds == 1) return fmt::format("{:.3f}", spread.mean);
  return fmt::format("{:.3f}±{:.3f}", spread.mean, spread.deviation);
}

std::string Number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string NameCell(const Comparison& comparison, const MixerResult& mixer) {
  std::vector<std::string> notes;
  if (mixer.diverged > 0) {
    notes.push_back(fmt::format("{} of {} diverged", mixer.diverged, comparison.seeds));
  }
  if (!mixer.other_settings.empty()) notes.push_back("other settings");
  return notes.empty() ? mixer.name : fmt::format("{} ({})", mixer.name, Join(notes, ", "));
}

// The columns on the left: the names of the mixers, and what they are compared by. For tasks a last
// row has the scores of the majority class.
std::vector<TableRow> Scores(const Comparison& comparison) {
  if (comparison.of_tasks) {
    std::vector<ResultsRow> rows;
    for (const MixerResult& mixer : comparison.mixers) {
      rows.push_back(RowOf(NameCell(comparison, mixer), mixer.results));
    }
    const auto with_results =
        std::ranges::find_if_not(comparison.mixers, &Json::is_null, &MixerResult::results);
    if (with_results != comparison.mixers.end()) AddMajorityRow(with_results->results, &rows);
    return ResultsCells(rows);
  }
  std::vector<TableRow> rows = {{"", "log-perplexity"}};
  for (const MixerResult& mixer : comparison.mixers) {
    rows.push_back({NameCell(comparison, mixer), LogPerplexityCell(comparison, mixer)});
  }
  return rows;
}

TableRow Costs(const Comparison& comparison, const MixerResult& mixer) {
  return {Number("{:.3g}", mixer.StepsPerSecond().mean),
          Number("{:.2f}", RelativeSpeed(comparison, mixer)), WithThousands(mixer.parameters),
          HumanCount(mixer.flops_per_step), HumanBytes(mixer.planned_bytes)};
}

std::vector<TableRow> TableOf(const Comparison& comparison) {
  std::vector<TableRow> rows = Scores(comparison);
  const auto append = [](TableRow& row, const TableRow& more) {
    row.insert(row.end(), more.begin(), more.end());
  };
  rows[0][0] = "mixer";
  const TableRow costs = {"steps/s", "relative to " + comparison.mixers.front().name, "parameters",
                          "FLOPs/step", "memory"};
  append(rows[0], costs);
  for (size_t i = 1; i < rows.size(); ++i) {
    const bool is_mixer = i <= comparison.mixers.size();
    append(rows[i],
           is_mixer ? Costs(comparison, comparison.mixers[i - 1]) : TableRow(costs.size(), "-"));
  }
  return rows;
}

std::string Caption(const Comparison& comparison) {
  const std::string scores = comparison.of_tasks
                                 ? "The best evaluation of each task's validation split, and "
                                   "what that model gives on test splits, in percent"
                                 : "Log-perplexity on the validation split, in nats a token";
  return fmt::format("{} steps, {}, {}. {}{}; memory of one rank, as planned.",
                     WithThousands(comparison.steps), Counted(comparison.seeds, "seed"),
                     Counted(comparison.ranks, "rank"), scores,
                     comparison.seeds == 1 ? "" : ", with its standard deviation over the seeds");
}

std::vector<std::string> OtherSettings(const Comparison& comparison) {
  std::vector<std::string> all;
  for (const MixerResult& mixer : comparison.mixers) {
    all.insert(all.end(), mixer.other_settings.begin(), mixer.other_settings.end());
  }
  return all;
}

Json SpreadJson(const Spread& spread) {
  return {{"mean", spread.mean}, {"deviation", spread.deviation}};
}

Json CurveJson(const Curve& curve, const char* value) {
  Json points = Json::array();
  for (const PlotPoint& point : curve) {
    points.push_back({{"step", std::llround(point.x)}, {value, point.y}});
  }
  return points;
}

Json ScoresJson(const MixerResult& mixer, bool of_tasks) {
  const std::map<std::string, Curve> curves = mixer.Curves();
  if (!of_tasks) {
    return {{"log_perplexity", SpreadJson(mixer.LogPerplexity())},
            {"curve", CurveJson(CurveNamed(curves, kLogPerplexity), "log_perplexity")}};
  }
  Json metrics = Json::object();
  for (const auto& [name, curve] : curves) metrics[name] = CurveJson(curve, "value");
  return {{"results", mixer.results}, {"curves", metrics}};
}

// Means of one curve of the runs, where all of them have a value: a step that a run did not
// evaluate would bend the mean.
Curve MeanCurve(std::span<const RunHistory> histories,
                const std::function<const Curve&(const RunHistory&)>& curve_of) {
  std::map<double, std::vector<double>> values;
  for (const RunHistory& history : histories) {
    for (const PlotPoint& point : curve_of(history)) {
      if (point.x > 0) values[point.x].push_back(point.y);
    }
  }
  Curve curve;
  for (const auto& [step, of_step] : values) {
    if (of_step.size() == histories.size()) curve.push_back({step, SpreadOf(of_step).mean});
  }
  return curve;
}

// A picture of each thing that was evaluated.
std::string Pictures(const Comparison& comparison) {
  std::map<std::string, std::vector<NamedCurve>> pictures;
  for (const MixerResult& mixer : comparison.mixers) {
    for (auto& [name, curve] : mixer.Curves()) pictures[name].push_back({mixer.name, curve});
  }
  std::string html;
  for (const auto& [name, curves] : pictures) {
    html += HtmlPicture(CurvesSvg(curves, "training steps", name)) + "\n";
  }
  return html;
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

std::map<std::string, Curve> MixerResult::Curves() const {
  std::map<std::string, Curve> curves;
  const auto add = [&](const std::string& name, const auto& curve_of) {
    Curve curve = MeanCurve(histories, curve_of);
    if (!curve.empty()) curves[name] = std::move(curve);
  };
  add(kLogPerplexity, [](const RunHistory& history) -> const Curve& { return history.validation; });
  if (histories.empty()) return curves;
  // A metric that the first run lacks has no mean.
  for (const auto& metric : histories.front().metrics) {
    add(metric.first, [&](const RunHistory& history) -> const Curve& {
      return CurveNamed(history.metrics, metric.first);
    });
  }
  return curves;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text = TextTable(TableOf(comparison)) + Caption(comparison) + "\n";
  for (const std::string& note : OtherSettings(comparison)) text += note + "\n";
  return text;
}

Json ComparisonJson(const Comparison& comparison) {
  Json mixers = Json::array();
  for (const MixerResult& mixer : comparison.mixers) {
    Json& json = mixers.emplace_back(Json{{"name", mixer.name},
                                          {"model", mixer.model},
                                          {"steps_per_second", SpreadJson(mixer.StepsPerSecond())},
                                          {"relative_speed", RelativeSpeed(comparison, mixer)},
                                          {"parameters", mixer.parameters},
                                          {"flops_per_step", mixer.flops_per_step},
                                          {"planned_bytes", mixer.planned_bytes},
                                          {"diverged", mixer.diverged},
                                          {"other_settings", mixer.other_settings}});
    json.update(ScoresJson(mixer, comparison.of_tasks));
  }
  return {{"steps", comparison.steps},
          {"seeds", comparison.seeds},
          {"ranks", comparison.ranks},
          {"mixers", mixers}};
}

std::string ComparisonPage(const Comparison& comparison) {
  std::string models;
  for (const MixerResult& mixer : comparison.mixers) {
    models += HtmlElement("dt", mixer.name) + HtmlElement("dd", mixer.model) + "\n";
  }
  std::string notes;
  for (const std::string& note : OtherSettings(comparison)) notes += HtmlElement("p", note) + "\n";
  return HtmlPage("Mixers compared", HtmlTable(TableOf(comparison)) +
                                         HtmlElement("p", Caption(comparison)) + "\n" + notes +
                                         Pictures(comparison) + "<dl>\n" + models + "</dl>\n");
}

}  // namespace syntra
