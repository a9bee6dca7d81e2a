// SPDX-License-Identifier: Apache-2.0
// Runs side by side for browsers: one page, and each of its pictures by itself.
#pragma once

#include <string>
#include <vector>

#include "cli/run_report.h"

namespace syntra {

// The values of `report --picture`, besides the names of tasks' metrics.
std::vector<std::string> PictureNames();

// One of these pictures (SVG) of all runs, or that of a metric ("cola/matthews"). Throws
// Error(kConfig) if no run has what it would show.
std::string ReportPicture(const std::vector<RunReport>& reports, const std::string& name);

// All pictures, the runs' numbers, what happened to them, and how their configurations differ. The
// page needs no other files.
std::string ReportPage(const std::vector<RunReport>& reports);

}  // namespace syntra
