// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/contained.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/failure.h"
#include "base/memory_limits.h"
#include "base/output.h"
#include "base/text.h"
#include "base/uninterrupted.h"

namespace syntra {
namespace {

constexpr char kAnswer = 'a', kError = 'e';
// The exit code of a child that got no memory, whether our code or a library gave up.
constexpr int kRefused = static_cast<int>(ExitCode::kResources);

// Libraries use memory that they were refused.
void OnCrash(int number) {
  if (errno == ENOMEM) _exit(kRefused);
  std::signal(number, SIG_DFL);
  raise(number);
}

// Handlers are this program's own: they would write its messages and stop its run.
void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(number, OnCrash);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void Limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, value);
  setrlimit(resource, &limit);
}

void Confine(const ContainedLimits& limits) {
  ResetSignals();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, limits.seconds);
  if (const int64_t now = AddressSpaceInUse(); now > 0) {
    Limit(RLIMIT_AS, static_cast<size_t>(now) + limits.extra_memory);
  }
}

// Never returns, and runs nothing that belongs to the parent's end: no destructors, no exit
// handlers, no flushing of streams that the parent will flush.
[[noreturn]] void RunChild(int answer, const std::function<std::string()>& work,
                           const ContainedLimits& limits) {
  try {
    Confine(limits);
    WriteAll(answer, kAnswer + work());
  } catch (const std::bad_alloc&) {
    _exit(kRefused);
  } catch (const OutOfMemory&) {
    _exit(kRefused);
  } catch (const std::exception& error) {
    // Without the contexts: the parent has them, too.
    const std::string_view text = error.what();
    WriteAll(answer, kError + std::string(text.substr(0, text.find('\n'))));
  }
  _exit(0);
}

enum class Answer { kWhole, kTooLate, kTooLong };

// A child that has been started, and the end of the pipe from which its answer is read.
class Child {
 public:
  Child(pid_t process, int answer, const ContainedLimits& limits)
      : process_(process),
        answer_(answer),
        limits_(limits),
        end_(Clock::now() + std::chrono::seconds(limits.wall_seconds)) {}
  // Kills the child if it has not ended yet.
  ~Child() {
    close(answer_);
    if (status_) return;
    kill(process_, SIGKILL);
    Uninterrupted([&] { return waitpid(process_, nullptr, 0); });
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads the answer, then waits for the child to end.
  Answer Finish(std::string* text) {
    const Answer answer = Read(text);
    return answer == Answer::kWhole && !Wait() ? Answer::kTooLate : answer;
  }
  // As waitpid gives it, of a child that has ended.
  int status() const { return status_.value_or(0); }

 private:
  Answer Read(std::string* text) {
    std::vector<char> block(size_t{1} << 16);
    while (Clock::now() < end_) {
      pollfd ready{answer_, POLLIN, 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      const ssize_t count = read(answer_, block.data(), block.size());
      if (count == 0) return Answer::kWhole;
      if (count > 0) text->append(block.data(), count);
      if (text->size() > limits_.answer_bytes) return Answer::kTooLong;
    }
    return Answer::kTooLate;
  }

  // False if it does not end in time: a hostile one may close its pipe and sleep.
  bool Wait() {
    std::chrono::microseconds pause(10);
    for (;; pause = std::min(2 * pause, std::chrono::microseconds(50000))) {
      int status = 0;
      if (waitpid(process_, &status, WNOHANG) == process_) {
        status_ = status;
        return true;
      }
      if (Clock::now() >= end_) return false;
      std::this_thread::sleep_for(pause);
    }
  }

  pid_t process_;
  int answer_;
  const ContainedLimits& limits_;
  Clock::time_point end_;
  std::optional<int> status_;
};

// The kernel kills where a machine or a control group has no more memory.
bool FoundNoMemory(int status) {
  return (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) ||
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace

std::string RunContained(const char* what, const std::function<std::string()>& work,
                         const ContainedLimits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    Fail(ExitCode::kResources, "cannot make a pipe: {}", SystemErrorText(errno));
  }
  const pid_t process = fork();
  if (process == 0) RunChild(ends[1], work, limits);
  const int fork_error = errno;
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    Fail(ExitCode::kResources,
         "cannot start a child process to read the file: {}; allow more processes (ulimit -u)",
         SystemErrorText(fork_error));
  }
  Child child(process, ends[0], limits);
  std::string text;
  const Answer answer = child.Finish(&text);
  const int status = child.status();
  if (answer == Answer::kTooLate) {
    Fail(ExitCode::kResources,
         "{} did not finish within {} s: the machine is busy, or was suspended; try again", what,
         limits.wall_seconds);
  }
  if (answer == Answer::kWhole && FoundNoMemory(status)) {
    throw OutOfMemory(
        fmt::format("{} needed more than {}, or more than there is: free some memory; if that does "
                    "not help, the file is damaged or hostile",
                    what, HumanBytes(static_cast<double>(limits.extra_memory))));
  }
  constexpr const char* kLikely = "the file is damaged or hostile";
  if (answer == Answer::kTooLong || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
    Fail(ExitCode::kCheckpoint,
         "{} did not finish within {} s of processor time, or gave too long an answer: {}", what,
         limits.seconds, kLikely);
  }
  if (WIFSIGNALED(status)) {
    Fail(ExitCode::kCheckpoint, "{} crashed ({}): {}", what, strsignal(WTERMSIG(status)), kLikely);
  }
  if (text.empty() || (text[0] != kAnswer && text[0] != kError) || status != 0) {
    Fail(ExitCode::kCheckpoint, "{} ended without an answer: {}", what, kLikely);
  }
  if (text[0] == kError) throw Error(ExitCode::kCheckpoint, Printable(text.substr(1)));
  return text.substr(1);
}

}  // namespace syntra
