// SPDX-License-Identifier: Apache-2.0
// How a program that was run has ended, and what it printed.
#pragma once

#include <sys/wait.h>

#include <string>

namespace syntra {

struct Outcome {
  int code = -1;  // the exit code, or 1000 + signal
  std::string out, err;

  // Whether `part` was printed to stderr.
  bool Says(const std::string& part) const { return err.find(part) != std::string::npos; }
};

// Outcome::code by the status of waitpid.
inline int CodeOfStatus(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace syntra
