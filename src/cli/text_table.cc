// SPDX-License-Identifier: Apache-2.0
#include "cli/text_table.h"

#include <algorithm>

#include "base/utf8.h"

namespace syntra {

std::string TextTable(std::span<const TableRow> rows) {
  if (rows.empty()) return "";
  std::vector<size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (size_t column = 0; column < widths.size(); ++column) {
      widths[column] = std::max(widths[column], CodePointCount(row[column]));
    }
  }
  std::string table;
  for (const TableRow& row : rows) {
    for (size_t column = 0; column < widths.size(); ++column) {
      const std::string padding(widths[column] - CodePointCount(row[column]), ' ');
      table += column == 0 ? row[column] + padding : "  " + padding + row[column];
    }
    table += '\n';
  }
  return table;
}

}  // namespace syntra
