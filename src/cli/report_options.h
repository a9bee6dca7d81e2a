// SPDX-License-Identifier: Apache-2.0
// --json and --ranks, for commands that report on a configuration.
#pragma once

#include <memory>

#include "cli/command.h"

namespace syntra {

struct ReportOptions {
  bool json = false;
  int ranks = 1;
};

std::shared_ptr<ReportOptions> AddReportOptions(CLI::App& app);

}  // namespace syntra
