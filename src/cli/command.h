// SPDX-License-Identifier: Apache-2.0
// The description of a subcommand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace syntra {

// The work of a command, which runs once the whole command line was found to be valid.
using Action = std::function<ExitCode()>;

// Which ranks of a job run a command.
enum class RunBy {
  kRankZero,  // the others end at once: they would do the same, and write the same files
  kAllRanks,  // each knows its part
};

struct Command {
  const char* name;
  const char* summary;  // one sentence for --help: what the user gets
  // Adds options, arguments and inner subcommands to `app`. What they are parsed into must live as
  // long as the returned action.
  Action (*set_up)(CLI::App& app);
  const char* example = nullptr;  // its arguments, for --help
  const char* elsewhere = "";     // names that other programs have for it, with spaces between them
  RunBy run_by = RunBy::kRankZero;
};

// "syntra config show".
std::string FullName(const CLI::App& app);

// The commands within `app`, in the order in which they were added.
std::vector<const CLI::App*> InnerCommands(const CLI::App& app);

// Lets an option of a list be given several times, each time with one value: more would swallow the
// arguments that follow. Its help says so.
CLI::Option* Repeatable(CLI::Option* option);

// For what is only a choice of inner commands.
Action SetUpParts(CLI::App& app, const std::vector<Command>& parts);

// Does `work` on rank 0 alone: on others nothing, and on 0 a warning says so. `name`: of what is
// done, "syntra report".
ExitCode OnRankZero(const std::string& name, const Action& work);

}  // namespace syntra
