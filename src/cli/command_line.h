// SPDX-License-Identifier: Apache-2.0
// Parses the command line and runs the chosen command.
#pragma once

namespace syntra {

// The process's exit code. Prints errors to stderr, those of crashes too (base/crash_guard.h).
int RunCommandLine(int argc, const char* const* argv);

}  // namespace syntra
