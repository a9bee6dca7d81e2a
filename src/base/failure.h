// SPDX-License-Identifier: Apache-2.0
// How a command fails, as its user sees it: an exit code and a message for any exception.
#pragma once

#include <string>

#include "base/error.h"

namespace syntra {

struct Failure {
  ExitCode code = ExitCode::kInternal;
  std::string message;
};

// Returns what the exception that is being handled means to the user. An Error has its own code. If
// the system refused memory, a thread, a file or standard output, the code is kResources. Anything
// else is a bug in this program.
Failure CurrentFailure() noexcept;

// Memory was refused. The data that was being read or written may be good all the same, so callers
// must not treat this as damage. Ends with MemoryLimitNote().
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message);
};

// " (ulimit -v allows 400.0 MiB of address space)", or "" if there is no such limit. It is appended
// to messages about memory, since people rarely think of it.
std::string MemoryLimitNote();

}  // namespace syntra
