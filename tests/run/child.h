// SPDX-License-Identifier: Apache-2.0
// A forked child process, for tests of signals, locks and exit codes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <sstream>
#include <string>

#include "base/host.h"
#include "tests/base/outcome.h"
#include "tests/base/waiting.h"

namespace syntra {

class Child {
 public:
  // Runs body(ready) in a child; its result is the child's exit code. The constructor returns when
  // the child has called ready() or has ended.
  explicit Child(const std::function<int(const std::function<void()>& ready)>& body) {
    int ends[2];
    // O_CLOEXEC, so that a program that the child starts does not keep the parent waiting.
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      _exit(body([&] { EXPECT_EQ(write(ends[1], "r", 1), 1); }));
    }
    close(ends[1]);
    char byte;
    ready_ = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
  }
  ~Child() {
    if (pid_ > 0 && !waited_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  void Signal(int signal) const { kill(pid_, signal); }
  // Sends it, and returns when the child has begun to handle it.
  void Deliver(int signal) const {
    Signal(signal);
    EXPECT_TRUE(WaitUntil([&] {
      std::istringstream status(KernelFile("/proc/" + std::to_string(pid_) + "/status"));
      for (std::string line; std::getline(status, line);) {
        const bool pending = line.starts_with("ShdPnd:") || line.starts_with("SigPnd:");
        if (pending && line.find_first_of("123456789abcdef", 7) != line.npos) return false;
      }
      return true;
    }));
  }
  bool running() const {
    siginfo_t info = {};
    return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  // The exit code, or 1000 + signal. One that never ends is killed, and the test fails.
  int Wait() {
    int status = 0;
    if (!WaitUntil([&] { return !running(); })) {
      ADD_FAILURE() << "process " << pid_ << " hangs";
      Signal(SIGKILL);
    }
    waitpid(pid_, &status, 0);
    waited_ = true;
    return CodeOfStatus(status);
  }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
  bool waited_ = false;
};

}  // namespace syntra
