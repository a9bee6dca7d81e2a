// SPDX-License-Identifier: Apache-2.0
// The results of finetuning as a table: a column a task, in the order of the tasks, then a column a
// test split whose answers are known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/text_table.h"

namespace syntra {

struct ResultsRow {
  std::string name;             // "this run", "majority class"
  Json tasks;                   // {"mrpc": {"f1": 88.2, "accuracy": 84.1}}
  Json tests = Json::object();  // {"multi30k_test": {"bleu": 25.1}}
  Json average = nullptr;       // a number, or null
  Json deviations = nullptr;    // of tasks and tests: standard deviations over seeds; or null
};

// The row of a run's results.json, or of several seeds' as one (SpreadOfRuns); of null, a row
// without results.
ResultsRow RowOf(const std::string& name, const Json& results);

// Adds a row of what the commonest answer of each task would give, if a task has one.
void AddMajorityRow(const Json& results, std::vector<ResultsRow>* rows);

// Under "mrpc f1/accuracy", "88.2/84.1": percentages with one digit after the point, and "±0.4"
// after values with a deviation. A task that a row lacks is "-".
std::string ResultsTable(std::span<const ResultsRow> rows);
// The cells of this table: the names of the columns, then the rows. The columns are those of the
// first row with results.
std::vector<TableRow> ResultsCells(std::span<const ResultsRow> rows);

}  // namespace syntra
