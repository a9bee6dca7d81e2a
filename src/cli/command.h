// SPDX-License-Identifier: Apache-2.0
// The description of a subcommand.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace syntra {

// The work of a command, which runs once the whole command line was found to be valid.
using Action = std::function<ExitCode()>;

struct Command {
  const char* name;
  const char* summary;  // one sentence for --help: what the user gets
  // Adds options, arguments and inner subcommands to `app`. What they are parsed into must live as
  // long as the returned action.
  Action (*set_up)(CLI::App& app);
  const char* example = nullptr;  // its arguments, for --help
  const char* elsewhere = "";     // names that other programs have for it, with spaces between them
};

// Makes the subcommand with its text for --help; `command.set_up` is still to be called.
CLI::App* AddCommand(CLI::App& parent, const Command& command);

// "syntra config show".
std::string FullName(const CLI::App& app);

// Lets an option of a list be given several times, each time with one value: more would swallow the
// arguments that follow. Its help says so.
CLI::Option* Repeatable(CLI::Option* option);

// For a command that is only a choice of inner commands.
Action SetUpParts(CLI::App& app, std::initializer_list<Command> parts);

}  // namespace syntra
