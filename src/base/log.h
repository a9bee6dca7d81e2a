// The process's logger. Ranks other than 0 write only to their own file, so a job prints each line
// once.
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>

#include "base/terminal.h"

namespace syntra {

// Logs to stderr until SetUpLogging is called.
spdlog::logger& Log();

// The line of stderr that is redrawn in place; what is logged is written above it.
StatusLine& StderrLine();

// Rank 0 logs to stderr and, if `directory` is not empty, every rank appends to
// directory/rank-NNNN.log. A log file that cannot be written never stops the program.
void SetUpLogging(int rank, const std::filesystem::path& directory);

}  // namespace syntra
