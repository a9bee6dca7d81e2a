// SPDX-License-Identifier: Apache-2.0
// A running `syntra`, alone or as ranks under mpirun, for tests that watch, signal and kill it.
// Environment, for test programs that were copied to another machine: SYNTRA_TEST_PROGRAM and
// SYNTRA_TEST_MPIRUN are used instead of this build's programs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/base/outcome.h"
#include "tests/base/waiting.h"

namespace syntra {

struct StartOptions {
  std::string program;                   // empty: `syntra` of this build
  int ranks = 1;                         // more than one: under mpirun
  std::vector<std::string> environment;  // NAME=VALUE
  std::string input;                     // the content of stdin
  int64_t file_size_limit = -1;          // in bytes; simulates a full disk
  std::vector<std::string> wrapper;      // a command that gets the program's command line
  // If set, these replace the arguments and the working directory of the last rank.
  std::vector<std::string> other_arguments;
  std::string other_folder;
};

class Program {
 public:
  // The program's output goes to files in `scratch`.
  Program(const Path& scratch, const std::vector<std::string>& arguments,
          const StartOptions& options = {});
  // Kills the program if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The process id of `syntra` or of mpirun.
  pid_t pid() const { return pid_; }
  // The process ids of the ranks under mpirun that have not ended.
  std::vector<pid_t> RankPids() const;
  void Signal(int signal) const;
  bool running() const;
  // What it has printed to stderr so far, and mpirun.
  std::string Errors() const { return ReadOwnFile(base_.string() + ".err", 1 << 20).value_or(""); }
  // Kills the program and all ranks at once, like a power loss. Returns when all have ended.
  void Kill();
  // Waits until the program ends. What mpirun itself says of it is left out. One that never does is
  // killed, and the test fails; but an mpirun that has no ranks is only killed (code 1009): after a
  // rank was killed, that of Open MPI 4.1 at times waits for itself for ever, for a lock in
  // PMIx_server_finalize.
  Outcome Wait();

 private:
  bool LauncherIsStuck();

  Path base_;
  bool launches_ = false;               // it is mpirun
  double looked_ = 0, ranks_seen_ = 0;  // when its ranks were looked for, and when it had some
  pid_t pid_ = -1;
  int status_ = 0;
  bool waited_ = false;
};

// Starts the program and waits for its end.
Outcome RunProgram(const Path& scratch, const std::vector<std::string>& arguments,
                   const StartOptions& options = {});

// The path of mpirun; empty if it is not installed.
std::string MpirunPath();

}  // namespace syntra
