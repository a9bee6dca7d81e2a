// SPDX-License-Identifier: Apache-2.0
// Configuration files and --set, the same for every command that takes a configuration; --json and
// --ranks, for those that report on one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"

namespace CLI {
class Option;
}

namespace syntra {

// `path`, or if that is the directory of a run, the file of its recorded configuration. Throws
// Error(kConfig) if it is another directory.
std::string ConfigFileAt(const std::string& path);

struct ConfigOptions {
  const CLI::App* app = nullptr;
  // Files given as --config FILE, and as FILE alone.
  const CLI::Option *named = nullptr, *unnamed = nullptr;
  std::vector<std::string> named_files, unnamed_files;
  std::vector<std::string> overrides;

  // All files, in the order of the command line (ConfigFileAt).
  std::vector<std::string> Files() const;

  // Throws Error(kConfig) if there is neither a file nor an override.
  void RequireAny() const;
  // Throws Error(kConfig) if a run directory is among the files, and the train.directory that its
  // run recorded is not this directory, as where it was moved, or where the path is relative to
  // another working directory: there another run would begin. No matter where something else sets
  // train.directory.
  void RequireOwnDirectory() const;
  // Throws as these two, and Error(kConfig) with all errors.
  Config Load(const ConfigPurpose& purpose) const;
};

// Adds the options to `app`. Files can be given with --config or without.
std::shared_ptr<ConfigOptions> AddConfigOptions(CLI::App& app);

struct ReportOptions {
  bool json = false;
  int ranks = 1;
};
std::shared_ptr<ReportOptions> AddReportOptions(CLI::App& app);

}  // namespace syntra
