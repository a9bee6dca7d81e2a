// The subcommands, one line each, in the order of --help.
#pragma once

#include "cli/command.h"

namespace syntra {

Action SetUpConfig(CLI::App& app);
Action SetUpDoctor(CLI::App& app);
Action SetUpCompletion(CLI::App& app);

inline constexpr Command kCommands[] = {
    {"config", "Show, compare and explain configurations", SetUpConfig},
    {"doctor", "Report this machine and what the program finds on it", SetUpDoctor},
    {"completion", "Print a shell's completion script", SetUpCompletion},
};

}  // namespace syntra
