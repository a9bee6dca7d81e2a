// SPDX-License-Identifier: Apache-2.0
// Runs code in a forked child, for tests of code that ends the process.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <functional>

#include "tests/base/outcome.h"

namespace syntra {

// Runs `body` in a child. If it returns, the exit code is 99. What it prints to stdout is not kept.
inline Outcome RunInChild(const std::function<void()>& body) {
  int ends[2];
  Outcome ended;
  if (pipe(ends) != 0) return ended;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    _exit(99);
  }
  close(ends[1]);
  char block[4096];
  for (ssize_t count; (count = read(ends[0], block, sizeof block)) > 0;) {
    ended.err.append(block, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = CodeOfStatus(status);
  return ended;
}

}  // namespace syntra
