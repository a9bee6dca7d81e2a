// SPDX-License-Identifier: Apache-2.0
// The tables and texts of a page of runs: HTML, from one or several runs.
#pragma once

#include <string>
#include <vector>

#include "cli/run_report.h"

namespace syntra {

// The runs' numbers side by side, then a few lines on each.
std::string RunTable(const std::vector<RunReport>& reports);
std::string RunList(const std::vector<RunReport>& reports);

// The events of the runs, except saves and evaluations that went as planned; "" if there are none.
std::string EventTable(const std::vector<RunReport>& reports);

// For each validation example that was decoded: the outputs over the steps, a column for each run;
// "" if there are none.
std::string SampleTables(const std::vector<RunReport>& reports);

// The fields in which the configurations differ; of one run, its configuration.
std::string Configurations(const std::vector<RunReport>& reports);

}  // namespace syntra
