// SPDX-License-Identifier: Apache-2.0
#include "cli/report_options.h"

#include <CLI/CLI.hpp>

namespace syntra {

std::shared_ptr<ReportOptions> AddReportOptions(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_flag("--json", options->json, "Print JSON");
  app.add_option("--ranks", options->ranks, "Ranks that share the batch")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  return options;
}

}  // namespace syntra
