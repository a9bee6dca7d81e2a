// SPDX-License-Identifier: Apache-2.0
// A started `syntra`, alone or as the ranks of mpirun, for tests that watch it, signal it and kill
// it. Environment, for programs that were carried to another machine: SYNTRA_TEST_PROGRAM and
// SYNTRA_TEST_MPIRUN take the place of this build's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace syntra {

struct Outcome {
  int code = -1;  // the exit code, or 1000 + signal
  std::string out, err;
  double seconds = 0;

  // Whether `part` was printed to stderr.
  bool Says(const std::string& part) const { return err.find(part) != std::string::npos; }
};

struct StartOptions {
  std::string program;                   // empty: `syntra` of this build
  int ranks = 1;                         // more than one: under mpirun
  std::vector<std::string> environment;  // NAME=VALUE
  std::string input;                     // of stdin
  int64_t file_size_limit = -1;          // bytes; stands for a disk that is full
  std::vector<std::string> wrapper;      // a command that is given the program's command line
  // Of a last rank beside `ranks` - 1 of the arguments given: what differs on it.
  std::vector<std::string> other_arguments;  // empty: it is a rank as the others
  std::string other_folder;                  // that it works in; empty: that of the others
};

class Program {
 public:
  // `scratch` holds the files that take its output.
  Program(const Path& scratch, const std::vector<std::string>& arguments,
          const StartOptions& options = {});
  // Kills what still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Of `syntra`, or of mpirun.
  pid_t pid() const { return pid_; }
  // The ranks below mpirun.
  std::vector<pid_t> RankPids() const;
  void Signal(int signal) const;
  bool running() const;
  // What it has printed to stderr so far.
  std::string Errors() const { return ReadOwnFile(base_.string() + ".err", 1 << 20).value_or(""); }
  // Kills it, and its ranks with it, as a node that loses power would; returns when all are gone.
  void Kill();
  // Waits until it ends; after `limit` seconds it is killed and the test fails.
  Outcome Wait(double limit = 120);

 private:
  Path base_;
  pid_t pid_ = -1;
  double start_ = 0;
  int status_ = 0;
  bool waited_ = false;
};

// Starts it and waits.
Outcome RunProgram(const Path& scratch, const std::vector<std::string>& arguments,
                   const StartOptions& options = {});

// Where mpirun is; empty: it is not installed.
std::string MpirunPath();

void SleepSeconds(double seconds);
// Polls until `condition` holds; false after `limit` seconds.
template <typename Condition>
bool WaitUntil(const Condition& condition, double limit = 60) {
  for (const double end = MonotonicSeconds() + limit; !condition(); SleepSeconds(0.002)) {
    if (MonotonicSeconds() > end) return false;
  }
  return true;
}

}  // namespace syntra
