#include "cli/config_options.h"

#include <CLI/CLI.hpp>

namespace syntra {

std::shared_ptr<ConfigOptions> AddConfigOptions(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  // One value each: a list would swallow the arguments that follow.
  app.add_option("--config", options->files, "Configuration file; more are laid over it in order")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--set", options->overrides, "Change one field, e.g. --set train.steps=1000")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  return options;
}

}  // namespace syntra
