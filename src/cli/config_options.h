// --config and --set, the same for every command that takes a configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"

namespace syntra {

struct ConfigOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;

  // Throws Error(kConfig) with all errors.
  Config Load(const ConfigPurpose& purpose) const { return LoadConfig(files, overrides, purpose); }
};

// Adds the options to `app`; --config is then required.
std::shared_ptr<ConfigOptions> AddConfigOptions(CLI::App& app);

}  // namespace syntra
