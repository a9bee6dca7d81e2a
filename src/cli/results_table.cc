// SPDX-License-Identifier: Apache-2.0
#include "cli/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace syntra {
namespace {

using Cells = std::vector<std::string>;

std::string Cell(const ResultsRow& row, const std::string& task) {
  if (!row.tasks.contains(task)) return "-";
  Cells values;
  for (const auto& [name, value] : row.tasks[task].items()) {
    values.push_back(fmt::format("{:.1f}", value.get<double>()));
    if (row.deviations.is_null()) continue;
    values.back() += fmt::format("±{:.1f}", row.deviations[task][name].get<double>());
  }
  return Join(values, "/");
}

// Characters as a terminal shows them: bytes that do not continue one.
size_t Width(const std::string& text) {
  return std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

std::string ResultsTable(std::span<const ResultsRow> rows) {
  std::vector<Cells> lines(rows.size() + 1);
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
  std::string table;
  for (const Cells& line : lines) {
    std::string text;
    for (size_t column = 0; column < line.size(); ++column) {
      size_t width = 0;
      for (const Cells& other : lines) width = std::max(width, Width(other[column]));
      const std::string padding(width - Width(line[column]), ' ');
      text += column == 0 ? line[column] + padding : "  " + padding + line[column];
    }
    table += text + '\n';
  }
  return table;
}

}  // namespace syntra
