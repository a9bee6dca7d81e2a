// SPDX-License-Identifier: Apache-2.0
// Runs another program.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "base/file.h"

extern char** environ;

namespace syntra {

// Runs a program found in PATH and writes its stderr to `output`. Returns the status of waitpid, or
// -1 if the program cannot be started.
inline int RunProcess(const std::vector<std::string>& arguments, const Path& output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t process;
  const int failed = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (failed || waitpid(process, &status, 0) != process) return -1;
  return status;
}

}  // namespace syntra
