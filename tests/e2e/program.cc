// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <sstream>

namespace syntra {
namespace {

void Redirect(const Path& path, int flags, int descriptor) {
  const int file = open(path.c_str(), flags, 0644);
  dup2(file, descriptor);
  close(file);
}

std::string FromEnvironment(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value ? value : otherwise;
}

std::vector<std::string> CommandLine(const std::vector<std::string>& arguments,
                                     const StartOptions& options) {
  std::vector<std::string> words = options.wrapper;
  const std::string program = options.program.empty()
                                  ? FromEnvironment("SYNTRA_TEST_PROGRAM", SYNTRA_BINARY)
                                  : options.program;
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (options.ranks > 1) {
    add({MpirunPath(), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"});
    add({"-n", std::to_string(options.ranks)});
  }
  if (!options.other_arguments.empty()) {
    // Not by a colon, on which mpirun of Open MPI 5.0.7 crashes.
    add({"bash", "-c",
         "program=$1 rank=$2 folder=$3 count=$4; shift 4\n"
         "if ((OMPI_COMM_WORLD_RANK == rank)); then cd \"$folder\"; shift \"$count\"\n"
         "else set -- \"${@:1:count}\"; fi\n"
         "exec \"$program\" \"$@\""});
    add({"bash", program, std::to_string(options.ranks - 1)});
    add({options.other_folder.empty() ? "." : options.other_folder});
    add({std::to_string(arguments.size())});
    add(arguments);
    add(options.other_arguments);
    return words;
  }
  add({program});
  add(arguments);
  return words;
}

// Without what mpirun says of a job's end, between two lines of dashes.
std::string WithoutBoxes(const std::string& text) {
  std::string kept;
  bool inside = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 40 && line.find_first_not_of('-') == line.npos) {
      inside = !inside;
    } else if (!inside && line != std::string_view("\0", 1)) {
      kept += line + '\n';
    }
  }
  return kept;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code code;
  const Path tasks = fmt::format("/proc/{}/task", parent);
  for (const auto& task : std::filesystem::directory_iterator(tasks, code)) {
    try {
      std::istringstream list(ReadWholeFile(task.path() / "children"));
      for (pid_t child; list >> child;) children.push_back(child);
    } catch (const std::exception&) {
      // The task ended meanwhile.
    }
  }
  return children;
}

}  // namespace

std::string MpirunPath() { return FromEnvironment("SYNTRA_TEST_MPIRUN", SYNTRA_MPIRUN); }

Program::Program(const Path& scratch, const std::vector<std::string>& arguments,
                 const StartOptions& options) {
  static std::atomic<int> count = 0;
  base_ = scratch / fmt::format("program-{}", count++);
  ReplaceFileDurably(base_.string() + ".in", options.input);
  const std::vector<std::string> words = CommandLine(arguments, options);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  launches_ = options.ranks > 1;
  ranks_seen_ = MonotonicSeconds();
  pid_ = fork();
  if (pid_ != 0) return;
  setpgid(0, 0);
  // A test that was started in the background ignores ^C, and shells would hand that on.
  signal(SIGINT, SIG_DFL);
  Redirect(base_.string() + ".in", O_RDONLY, STDIN_FILENO);
  Redirect(base_.string() + ".out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  Redirect(base_.string() + ".err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  // Open MPI's shared memory of a killed job is left behind; here it goes with the scratch
  // directory.
  setenv("OMPI_MCA_btl_vader_backing_directory", base_.parent_path().c_str(), 1);
  // A rank whose peer is killed while they join waits for it as long as it may, at times even after
  // mpirun has ended: not longer than a test does.
  setenv("SYNTRA_WATCHDOG", "init=40", 0);
  for (const std::string& variable : options.environment) {
    putenv(const_cast<char*>(variable.c_str()));
  }
  if (options.file_size_limit >= 0) {
    const auto bytes = static_cast<rlim_t>(options.file_size_limit);
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  execvp(pointers.front(), pointers.data());
  _exit(127);
}

Program::~Program() {
  if (!waited_) Kill();
}

// An mpirun that is stuck may never look after a rank that has ended.
std::vector<pid_t> Program::RankPids() const {
  std::vector<pid_t> ranks = ChildrenOf(pid_);
  std::erase_if(ranks, [](pid_t rank) { return !Alive(rank); });
  return ranks;
}

void Program::Signal(int signal) const { kill(pid_, signal); }

bool Program::running() const {
  siginfo_t info = {};
  return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void Program::Kill() {
  const std::vector<pid_t> below = RankPids();
  kill(-pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
  waited_ = true;
  for (const pid_t rank : below) {
    EXPECT_TRUE(WaitUntil([&] { return !Alive(rank); })) << "rank " << rank << " lives on";
  }
}

bool Program::LauncherIsStuck() {
  constexpr double kGraceSeconds = 30;  // long enough for the start of ranks on a busy machine
  const double now = MonotonicSeconds();
  if (!launches_ || now < looked_ + 0.1) return false;  // looking is expensive
  looked_ = now;
  if (!RankPids().empty()) ranks_seen_ = now;
  return now > ranks_seen_ + kGraceSeconds;
}

Outcome Program::Wait() {
  if (!WaitUntil([&] { return !running() || LauncherIsStuck(); })) {
    ADD_FAILURE() << "the program hangs";
  }
  if (running()) Kill();
  if (!waited_) waitpid(pid_, &status_, 0);
  waited_ = true;
  Outcome outcome;
  outcome.code = CodeOfStatus(status_);
  outcome.out = ReadWholeFile(base_.string() + ".out");
  outcome.err = ReadWholeFile(base_.string() + ".err");
  if (launches_) outcome.err = WithoutBoxes(outcome.err);
  return outcome;
}

Outcome RunProgram(const Path& scratch, const std::vector<std::string>& arguments,
                   const StartOptions& options) {
  return Program(scratch, arguments, options).Wait();
}

}  // namespace syntra
