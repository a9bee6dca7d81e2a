// SPDX-License-Identifier: Apache-2.0
#include "cli/report_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/page.h"
#include "config/print.h"
#include "train/continuation.h"
#include "train/describe.h"

namespace syntra {
namespace {

using Reports = std::vector<RunReport>;

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

}  // namespace

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

std::string EventTable(const Reports& reports) {
  std::vector<TableRow> rows{{"run", "time (UTC)", "step", "event", "details"}};
  for (const RunReport& report : reports) {
    for (TableRow& row : EventRows(report)) rows.push_back(std::move(row));
  }
  return rows.size() > 1 ? HtmlTable(rows, Cells::kText) : "";
}

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

std::string Configurations(const Reports& reports) {
  if (reports.size() > 1) {
    return HtmlHeading("Differences of the configurations") + ConfigTable(reports);
  }
  return HtmlHeading("Configuration") +
         HtmlElement("pre", MinimalConfigText(reports.front().config));
}

}  // namespace syntra
