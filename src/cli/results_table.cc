// SPDX-License-Identifier: Apache-2.0
#include "cli/results_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace syntra {
namespace {

// "mrpc f1/accuracy": the values of the column's cells, in their order.
std::string ColumnName(const std::string& task, const Json& values) {
  std::vector<std::string> metrics;
  for (const auto& value : values.items()) metrics.push_back(value.key());
  return fmt::format("{} {}", task, Join(metrics, "/"));
}

// The cell of one of the row's tasks or test splits (`part`): "88.2/84.1", "-" without results.
std::string Cell(const ResultsRow& row, Json ResultsRow::*part, const std::string& name) {
  if (!(row.*part).contains(name)) return "-";
  std::vector<std::string> values;
  for (const auto& [metric, value] : (row.*part)[name].items()) {
    values.push_back(fmt::format("{:.1f}", value.get<double>()));
    if (row.deviations.is_null()) continue;
    values.back() += fmt::format("±{:.1f}", row.deviations[name][metric].get<double>());
  }
  return Join(values, "/");
}

}  // namespace

ResultsRow RowOf(const std::string& name, const Json& results) {
  if (results.is_null()) return {.name = name, .tasks = Json::object()};
  return {.name = name,
          .tasks = results["tasks"],
          .tests = results.value("test", Json::object()),
          .average = results["average"],
          .deviations = results.value("deviations", Json())};
}

void AddMajorityRow(const Json& results, std::vector<ResultsRow>* rows) {
  const Json majority = results.value("majority", Json::object());
  if (majority.empty()) return;
  rows->push_back({.name = "majority class",
                   .tasks = majority,
                   .average = results.value("majority_average", Json())});
}

std::string ResultsTable(std::span<const ResultsRow> rows) { return TextTable(ResultsCells(rows)); }

std::vector<TableRow> ResultsCells(std::span<const ResultsRow> rows) {
  std::vector<TableRow> lines(rows.size() + 1);
  lines[0] = {"", "average"};
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& average = rows[i].average;
    lines[i + 1] = {rows[i].name,
                    average.is_null() ? "-" : fmt::format("{:.1f}", average.get<double>())};
  }
  const auto with_results =
      std::ranges::find_if(rows, [](const ResultsRow& row) { return !row.tasks.empty(); });
  if (with_results == rows.end()) return lines;
  for (Json ResultsRow::*part : {&ResultsRow::tasks, &ResultsRow::tests}) {
    for (const auto& [name, values] : ((*with_results).*part).items()) {
      lines[0].push_back(ColumnName(name, values));
      for (size_t i = 0; i < rows.size(); ++i) lines[i + 1].push_back(Cell(rows[i], part, name));
    }
  }
  return lines;
}

}  // namespace syntra
