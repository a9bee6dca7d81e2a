// SPDX-License-Identifier: Apache-2.0
// syntra doctor [--json]
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/machine.h"

namespace syntra {
namespace {

void PrintText(const MachineReport& report) {
  std::string section;
  for (const Fact& fact : report.facts) {
    if (fact.section != section) fmt::print("{}\n", fact.section);
    section = fact.section;
    fmt::print("  {:26} {}\n", fact.name, fact.value);
  }
  if (!report.warnings.empty()) fmt::print("warnings\n");
  for (const std::string& warning : report.warnings) fmt::print("  {}\n", warning);
}

void PrintJson(const MachineReport& report) {
  Json json;
  for (const Fact& fact : report.facts) json[fact.section][fact.name] = fact.value;
  json["warnings"] = report.warnings;
  fmt::print("{}\n", JsonText(json, 2));
}

}  // namespace

Action SetUpDoctor(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [as_json] {
    const MachineReport report = ExamineMachine();
    *as_json ? PrintJson(report) : PrintText(report);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
