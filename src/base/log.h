// SPDX-License-Identifier: Apache-2.0
// The process's logger. Ranks other than 0 write only to their own file, so a job prints each line
// once.
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>
#include <string>

namespace syntra {

// Logs to stderr until SetUpLogging is called. What goes to stderr is written above its status line
// (terminal.h).
spdlog::logger& Log();

// Logs a warning that this process has not logged yet; returns whether it did. For what is found
// each time that something is looked at: a file that is checked before it is read.
bool WarnOnce(const std::string& text);

// From now on rank 0 logs to stderr and, unless `directory` is empty, every rank appends to
// the file RankLogName of it. Logging never stops the program. If the log file cannot be written, a
// warning on stderr says so once; lines that stderr does not take are only in the file.
std::string RankLogName(int rank);  // "rank-0012.log"
void SetUpLogging(int rank, const std::filesystem::path& directory);

// Logs an error only to the log file, for errors that are printed on stderr anyway.
void NoteInLogFile(const std::string& message);

}  // namespace syntra
