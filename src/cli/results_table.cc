// SPDX-License-Identifier: Apache-2.0
#include "cli/results_table.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "cli/text_table.h"

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

std::string ResultsTable(std::span<const ResultsRow> rows) {
  std::vector<TableRow> lines(rows.size() + 1);
  lines[0] = {"", "average"};
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& average = rows[i].average;
    lines[i + 1] = {rows[i].name,
                    average.is_null() ? "-" : fmt::format("{:.1f}", average.get<double>())};
  }
  for (const auto& [task, values] : rows.front().tasks.items()) {
    lines[0].push_back(task);
    for (size_t i = 0; i < rows.size(); ++i) lines[i + 1].push_back(Cell(rows[i], task));
  }
  return TextTable(lines);
}

}  // namespace syntra
