// SPDX-License-Identifier: Apache-2.0
#include "cli/results_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace syntra {
namespace {

std::string Cell(const ResultsRow& row, const std::string& task) {
  if (!row.tasks.contains(task)) return "-";
  std::vector<std::string> values;
  for (const auto& [name, value] : row.tasks[task].items()) {
    values.push_back(fmt::format("{:.1f}", value.get<double>()));
    if (row.deviations.is_null()) continue;
    values.back() += fmt::format("±{:.1f}", row.deviations[task][name].get<double>());
  }
  return Join(values, "/");
}

}  // namespace

ResultsRow RowOf(const std::string& name, const Json& results) {
  if (results.is_null()) return {.name = name, .tasks = Json::object()};
  return {.name = name,
          .tasks = results["tasks"],
          .average = results["average"],
          .deviations = results.value("deviations", Json())};
}

ResultsRow MajorityRow(const Json& results) {
  return {.name = "majority class",
          .tasks = results["majority"],
          .average = results.value("majority_average", Json())};
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
  for (const auto& [task, values] : with_results->tasks.items()) {
    lines[0].push_back(task);
    for (size_t i = 0; i < rows.size(); ++i) lines[i + 1].push_back(Cell(rows[i], task));
  }
  return lines;
}

}  // namespace syntra
