// SPDX-License-Identifier: Apache-2.0
// What ends a command, as its user sees it: from any exception to an exit code and a message.
#pragma once

#include <string>

#include "base/error.h"

namespace syntra {

struct Failure {
  ExitCode code = ExitCode::kInternal;
  std::string message;
};

// Of the exception that is being handled: an Error's own; kResources where the system refuses
// memory, a thread, a file or standard output; else a bug in this program.
Failure CurrentFailure() noexcept;

// " (ulimit -v allows 400.0 MiB of address space)", or "" if there is no such limit: behind
// messages about memory, since people rarely think of it.
std::string MemoryLimitNote();

}  // namespace syntra
