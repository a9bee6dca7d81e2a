// SPDX-License-Identifier: Apache-2.0
// Tables for terminals.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syntra {

using TableRow = std::vector<std::string>;

// Lines with two spaces between the columns. The first column is flush left, the others are flush
// right. All rows have as many cells as the first.
std::string TextTable(std::span<const TableRow> rows);

}  // namespace syntra
