// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace syntra {

std::string FullName(const CLI::App& app) {
  return app.get_parent() ? FullName(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

CLI::App* AddCommand(CLI::App& parent, const Command& command) {
  CLI::App* app = parent.add_subcommand(command.name, command.summary);
  if (command.example) {
    app->footer("Example:\n  " + FullName(*app) + " " + command.example);
  }
  return app;
}

CLI::Option* Repeatable(CLI::Option* option) {
  return option->description(option->get_description() + "; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

Action SetUpParts(CLI::App& app, std::initializer_list<Command> parts) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& part : parts) {
    CLI::App* inner = AddCommand(app, part);
    actions.emplace_back(inner, part.set_up(*inner));
  }
  return [actions] {
    for (const auto& [inner, action] : actions) {
      if (inner->parsed()) return action();
    }
    return ExitCode::kInternal;  // require_subcommand lets none through
  };
}

}  // namespace syntra
