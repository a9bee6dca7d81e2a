// SPDX-License-Identifier: Apache-2.0
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
// directory/rank-NNNN.log. Neither ever stops the program: that a log file cannot be written is
// said once on stderr; a line that stderr does not take is in the file.
void SetUpLogging(int rank, const std::filesystem::path& directory);

// Logs an error to the log file only: for what is printed on stderr anyway.
void NoteInLogFile(const std::string& message);

}  // namespace syntra
