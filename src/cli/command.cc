// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "dist/launch.h"

namespace syntra {

std::string FullName(const CLI::App& app) {
  return app.get_parent() ? FullName(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::vector<const CLI::App*> InnerCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

CLI::Option* Repeatable(CLI::Option* option) {
  return option->description(option->get_description() + "; may be repeated")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

Action SetUpParts(CLI::App& app, const std::vector<Command>& parts) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& part : parts) {
    CLI::App* inner = app.add_subcommand(part.name, part.summary);
    const std::string name = FullName(*inner);
    if (part.example) inner->footer("Example:\n  " + name + " " + part.example);
    Action action = part.set_up(*inner);
    const bool is_choice = !InnerCommands(*inner).empty();
    if (!is_choice && part.run_by == RunBy::kRankZero) {
      action = [name, action] { return OnRankZero(name, action); };
    }
    actions.emplace_back(inner, std::move(action));
  }
  return [actions] {
    for (const auto& [inner, action] : actions) {
      if (inner->parsed()) return action();
    }
    return ExitCode::kInternal;  // require_subcommand lets none through
  };
}

ExitCode OnRankZero(const std::string& name, const Action& work) {
  const Launch launch = DetectLaunch();
  if (launch.rank > 0) return ExitCode::kDone;
  if (launch.expected_ranks > 1) {
    // Without MPI the others cannot know when this one is done, and joining it takes longer than
    // most of these commands. mpirun does not mind.
    Log().warn("{} works in one process; {} started {}, and the others end at once{}", name,
               launch.launcher, launch.expected_ranks,
               launch.launcher == "srun"
                   ? ". srun may then end this one too (--wait, WaitTime in slurm.conf): start it "
                     "with srun --ntasks=1"
                   : "");
  }
  return work();
}

}  // namespace syntra
