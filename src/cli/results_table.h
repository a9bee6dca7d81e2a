// SPDX-License-Identifier: Apache-2.0
// The results of finetuning as a table: a column a task, in the order of the tasks.
#pragma once

#include <span>
#include <string>

#include "base/json.h"

namespace syntra {

struct ResultsRow {
  std::string name;           // "this run", "majority class"
  Json tasks;                 // {"mrpc": {"f1": 88.2, "accuracy": 84.1}}
  Json average = nullptr;     // a number, or null
  Json deviations = nullptr;  // shaped as `tasks`: standard deviations over seeds; or null
};

// "cola 53.1  mrpc 88.2/84.1": values of a task between slashes, percentages with one digit after
// the point, and "±0.4" after values with a deviation. A task that a row lacks is "-".
std::string ResultsTable(std::span<const ResultsRow> rows);

}  // namespace syntra
