#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace syntra {

Action SetUpParts(CLI::App& app, std::initializer_list<Command> parts) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& part : parts) {
    CLI::App* inner = app.add_subcommand(part.name, part.summary);
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
