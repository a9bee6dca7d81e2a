// SPDX-License-Identifier: Apache-2.0
#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/page.h"
#include "cli/pictures.h"
#include "config/print.h"
#include "train/continuation.h"
#include "train/describe.h"

namespace syntra {
namespace {

using Reports = std::vector<RunReport>;

// "" if all curves are empty.
std::string CurvesOf(const Reports& reports, const std::string& y_name,
                     const std::function<Curve(const RunHistory&)>& curve_of) {
  std::vector<NamedCurve> curves;
  for (const RunReport& report : reports) {
    NamedCurve curve{report.name, curve_of(report.history)};
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves.empty() ? "" : CurvesSvg(curves, "training steps", y_name);
}

std::string CurvesNamed(const Reports& reports, const std::string& y_name,
                        const std::string& name) {
  return CurvesOf(reports, y_name,
                  [&](const RunHistory& history) { return CurveNamed(history.curves, name); });
}

// Without the value before training, on whose scale all that comes later would be one line.
std::string Validation(const Reports& reports) {
  return CurvesOf(reports, "validation log-perplexity", [](const RunHistory& history) {
    Curve curve = history.validation;
    std::erase_if(curve, [](const PlotPoint& point) { return point.x == 0; });
    return curve;
  });
}

std::string Training(const Reports& reports) {
  return CurvesOf(reports, "training log-perplexity",
                  [](const RunHistory& history) { return history.loss; });
}

std::string Throughput(const Reports& reports) {
  return CurvesNamed(reports, "tokens a second", "tokens_per_second");
}

std::string LearningRatePicture(const Reports& reports) {
  return CurvesNamed(reports, "learning rate", "learning_rate");
}

std::string GradientNorm(const Reports& reports) {
  return CurvesNamed(reports, "norm of the gradients", "grad_norm");
}

// A bar for each report of which `parts_of` gives any.
std::string BarsOf(const Reports& reports, const std::string& unit,
                   const std::function<NamedValues(const RunReport&)>& parts_of) {
  std::vector<NamedBar> bars;
  for (const RunReport& report : reports) {
    NamedBar bar{report.name, parts_of(report)};
    if (!bar.parts.empty()) bars.push_back(std::move(bar));
  }
  return bars.empty() ? "" : BarsSvg(bars, unit);
}

std::string Phases(const Reports& reports) {
  return BarsOf(reports, "milliseconds of a step, mean", [](const RunReport& report) {
    const RunHistory& history = report.history;
    NamedValues parts = PhasesOf(history);
    for (NamedValue& part : parts) {
      part.value *= 1e3 / static_cast<double>(history.loss.size());
    }
    return parts;
  });
}

std::string Time(const Reports& reports) {
  return BarsOf(reports, "% of the time since the first start", [](const RunReport& report) {
    NamedValues parts;
    if (!report.goodput) return parts;
    parts = report.goodput->Parts();
    for (NamedValue& part : parts) part.value *= 100 / report.goodput->wall;
    return parts;
  });
}

std::string Events(const Reports& reports) {
  std::vector<NamedEvents> runs;
  for (const RunReport& report : reports) {
    if (!report.events.empty()) runs.push_back({report.name, report.events});
  }
  return runs.empty() ? "" : EventsSvg(runs);
}

struct NamedPicture {
  const char* name;
  const char* title;
  std::string (*draw)(const Reports& reports);  // "" if no run has what it shows
};

constexpr NamedPicture kPictures[] = {
    {"validation", "Log-perplexity on the validation split, in nats a token", Validation},
    {"training", "Log-perplexity in training, in nats a token", Training},
    {"throughput", "Throughput", Throughput},
    {"phases", "Phases of a step", Phases},
    {"time", "Where the time went", Time},
    {"events", "Events", Events},
    {"learning_rate", "Learning rate", LearningRatePicture},
    {"gradient_norm", "Norm of the gradients before clipping", GradientNorm},
};

std::set<std::string> MetricNamesOf(const Reports& reports) {
  std::set<std::string> names;
  for (const RunReport& report : reports) {
    for (const auto& [name, curve] : report.history.metrics) names.insert(name);
  }
  return names;
}

// "" if no run has it.
std::string MetricPicture(const Reports& reports, const std::string& name) {
  return CurvesOf(reports, name,
                  [&](const RunHistory& history) { return CurveNamed(history.metrics, name); });
}

std::string MetricPictures(const Reports& reports) {
  std::string html;
  for (const std::string& name : MetricNamesOf(reports)) {
    html += HtmlHeading(name) + HtmlPicture(MetricPicture(reports, name));
  }
  return html;
}

std::string LastOf(const Curve& curve) {
  return curve.empty() ? "-" : fmt::format("{:.4f}", curve.back().y);
}

TableRow RunRow(const RunReport& report) {
  const RunHistory& history = report.history;
  const auto& goodput = report.goodput;
  return {report.name,
          fmt::format("{} of {}{}", WithThousands(history.step),
                      WithThousands(report.config.train().steps()), report.done ? ", done" : ""),
          LastOf(history.validation),
          history.validation.empty() ? "-" : fmt::format("{:.4f}", LowestOf(history.validation).y),
          HumanCount(history.tokens_per_second),
          std::isfinite(history.mfu) ? fmt::format("{:.1f}%", 100 * history.mfu) : "-",
          goodput ? fmt::format("{:.1f}%", 100 * goodput->share()) : "-",
          goodput ? std::to_string(goodput->restarts) : "-",
          goodput ? WithThousands(goodput->lost_steps) : "-",
          WithThousands(history.skipped)};
}

std::string FactText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return JsonText(value);
}

// The facts of an event besides its name, step and time.
std::string FactsOf(const RunEvent& event) {
  std::vector<std::string> facts;
  for (const auto& [name, value] : event.facts.items()) {
    if (name == "step" || name == "time" || name == "event") continue;
    facts.push_back(name + " " + FactText(value));
  }
  return Join(facts, ", ");
}

// "2026-11-24 14:05:09" of the time in the file, with a space that no line breaks at.
std::string TimeText(const RunEvent& event) {
  const auto time = event.facts.find("time");
  if (time == event.facts.end() || !time->is_string()) return "";
  std::string text = time->get<std::string>().substr(0, 19);
  if (const size_t t = text.find('T'); t != text.npos) text.replace(t, 1, "\u00a0");
  return text;
}

std::vector<TableRow> EventRows(const RunReport& report) {
  constexpr size_t kMostRows = 200;  // the last ones
  std::vector<TableRow> rows;
  for (const RunEvent& event : report.events) {
    if (event.name == "save" || event.name == "evaluation") continue;
    rows.push_back(
        {report.name, TimeText(event), WithThousands(event.step), event.name, FactsOf(event)});
  }
  if (rows.size() > kMostRows) rows.erase(rows.begin(), rows.end() - kMostRows);
  return rows;
}

// With short signs for gaps: "<extra_id_3>" becomes "[3]".
std::string GapsText(std::string text) {
  if (text.empty()) return "(empty)";
  constexpr std::string_view kOpen = "<extra_id_";
  for (size_t at = 0; (at = text.find(kOpen, at)) != text.npos; ++at) {
    const size_t end = text.find('>', at);
    if (end == text.npos) break;
    text.replace(end, 1, "]");
    text.replace(at, kOpen.size(), "[");
  }
  return text;
}

// The question of a sample; it is the same in runs on the same data.
struct Question {
  int64_t example;
  std::string input, target;
  auto operator<=>(const Question&) const = default;
};
// By step, then by the number of the run.
using OutputsByStep = std::map<int64_t, std::map<size_t, std::string>>;

std::map<Question, OutputsByStep> OutputsOf(const Reports& reports) {
  std::map<Question, OutputsByStep> questions;
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const SampleLine& sample : reports[i].samples) {
      questions[{sample.example, sample.input, sample.target}][sample.step][i] = sample.output;
    }
  }
  return questions;
}

// At most this many of the steps, spread evenly, the first and the last among them.
std::set<int64_t> SomeSteps(const OutputsByStep& outputs) {
  constexpr size_t kMost = 12;
  std::vector<int64_t> all;
  for (const auto& [step, of_runs] : outputs) all.push_back(step);
  if (all.size() <= kMost) return {all.begin(), all.end()};
  std::set<int64_t> some;
  for (size_t i = 0; i < kMost; ++i) some.insert(all[i * (all.size() - 1) / (kMost - 1)]);
  return some;
}

std::string SampleTable(const Reports& reports, const OutputsByStep& outputs) {
  std::set<size_t> runs;  // that have some
  for (const auto& [step, of_runs] : outputs) {
    for (const auto& [run, text] : of_runs) runs.insert(run);
  }
  std::vector<TableRow> rows{{"step"}};
  for (const size_t run : runs) rows.front().push_back(reports[run].name);
  const std::set<int64_t> steps = SomeSteps(outputs);
  for (const auto& [step, of_runs] : outputs) {
    if (!steps.contains(step)) continue;
    TableRow& row = rows.emplace_back(TableRow{WithThousands(step)});
    for (const size_t run : runs) {
      row.push_back(of_runs.contains(run) ? GapsText(of_runs.at(run)) : "-");
    }
  }
  return HtmlTable(rows, Cells::kText);
}

// Rows of fields in which the runs differ, a column for each run.
std::string ConfigTable(const Reports& reports) {
  std::vector<std::string> fields;  // in the order in which they come
  std::vector<std::map<std::string, std::string>> values(reports.size());
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const auto& [field, value] : ConfigValues(reports[i].config)) {
      const bool known = std::ranges::any_of(
          values, [&field = field](const auto& of_run) { return of_run.contains(field); });
      if (!known) fields.push_back(field);
      values[i][field] = value;
    }
  }
  std::vector<TableRow> rows{{"field"}};
  for (const RunReport& report : reports) rows.front().push_back(report.name);
  for (const std::string& field : fields) {
    if (field == "train.directory") continue;
    TableRow row{field};
    for (const auto& of_run : values) {
      row.push_back(of_run.contains(field) ? of_run.at(field) : "(none)");
    }
    if (std::ranges::count(row, row[1]) < std::ssize(row) - 1) rows.push_back(std::move(row));
  }
  if (rows.size() == 1) return HtmlElement("p", "There is no difference.") + "\n";
  return HtmlTable(rows, Cells::kText);
}

// The runs' numbers side by side, then a few lines on each.
std::string RunTable(const Reports& reports) {
  std::vector<TableRow> rows{{"run", "steps", "validation", "lowest", "tokens/s", "MFU", "goodput",
                              "restarts", "steps lost", "steps skipped"}};
  for (const RunReport& report : reports) rows.push_back(RunRow(report));
  return HtmlTable(rows);
}

std::string RunList(const Reports& reports) {
  std::string list = "<dl>\n";
  for (const RunReport& report : reports) {
    list += HtmlElement("dt", report.name) + HtmlElement("dd", report.directory.string()) +
            HtmlElement("dd", DescribeModel(report.config.model()));
    if (report.goodput) list += HtmlElement("dd", "goodput: " + Describe(*report.goodput));
    const std::string phases = DescribePhases(report.history);
    if (!phases.empty()) list += HtmlElement("dd", "steps: " + phases);
    const std::string rates = OtherRates(report.history, report.config);
    if (!rates.empty()) list += HtmlElement("dd", "schedule: " + rates);
    list += "\n";
  }
  return list + "</dl>\n";
}

// The events of the runs, except saves and evaluations that went as planned; "" if there are none.
std::string EventTable(const Reports& reports) {
  std::vector<TableRow> rows{{"run", "time (UTC)", "step", "event", "details"}};
  for (const RunReport& report : reports) {
    for (TableRow& row : EventRows(report)) rows.push_back(std::move(row));
  }
  return rows.size() > 1 ? HtmlTable(rows, Cells::kText) : "";
}

// For each validation example that was decoded: the outputs over the steps, a column for each run;
// "" if there are none.
std::string SampleTables(const Reports& reports) {
  const std::map<Question, OutputsByStep> questions = OutputsOf(reports);
  if (questions.empty()) return "";
  std::string html = HtmlHeading("Samples over time");
  for (const auto& [question, outputs] : questions) {
    html += HtmlElement("h3", "Validation example " + WithThousands(question.example)) + "\n" +
            HtmlElement("p", GapsText(question.input)) + "\n" +
            HtmlElement("p", "Truth: " + GapsText(question.target)) + "\n" +
            SampleTable(reports, outputs);
  }
  return html;
}

// The fields in which the configurations differ; of one run, its configuration.
std::string Configurations(const Reports& reports) {
  if (reports.size() > 1) {
    return HtmlHeading("Differences of the configurations") + ConfigTable(reports);
  }
  return HtmlHeading("Configuration") +
         HtmlElement("pre", MinimalConfigText(reports.front().config));
}

}  // namespace

std::vector<std::string> PictureNames() {
  std::vector<std::string> names;
  for (const NamedPicture& picture : kPictures) names.emplace_back(picture.name);
  return names;
}

std::string ReportPicture(const std::vector<RunReport>& reports, const std::string& name) {
  const auto picture = std::ranges::find(kPictures, name, &NamedPicture::name);
  std::string svg =
      picture == std::end(kPictures) ? MetricPicture(reports, name) : picture->draw(reports);
  if (svg.empty()) {
    std::vector<std::string> others;
    for (const NamedPicture& other : kPictures) {
      if (!other.draw(reports).empty()) others.emplace_back(other.name);
    }
    std::ranges::copy(MetricNamesOf(reports), std::back_inserter(others));
    Fail(ExitCode::kConfig, "none of these runs has what the picture \"{}\" shows; --picture: {}",
         name, others.empty() ? "there is none yet" : Join(others, ", "));
  }
  return svg;
}

std::string ReportPage(const std::vector<RunReport>& reports) {
  std::string body = RunTable(reports) + RunList(reports);
  for (const NamedPicture& picture : kPictures) {
    const std::string svg = picture.draw(reports);
    if (!svg.empty()) body += HtmlHeading(picture.title) + HtmlPicture(svg);
    if (std::string_view(picture.name) == "validation") body += MetricPictures(reports);
    if (std::string_view(picture.name) == "events") body += EventTable(reports);
  }
  std::vector<std::string> names;
  for (const RunReport& report : reports) names.push_back(report.name);
  return HtmlPage(Join(names, ", "), body + SampleTables(reports) + Configurations(reports));
}

}  // namespace syntra
