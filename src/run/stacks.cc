// SPDX-License-Identifier: Apache-2.0
#include "run/stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/uninterrupted.h"

namespace syntra {
namespace {

// Signal handlers can reach nothing but globals.
std::atomic<int> stack_descriptor{-1};
std::atomic<pid_t> asked_thread{0};
sem_t stack_written;

constexpr double kAnswerSeconds = 0.3;

int StackSignal() { return SIGRTMIN + 3; }

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// A thread that answers too late is silent: its frames would stand below another thread's name.
void OnStackSignal(int) {
  if (asked_thread.load() != ThisThread()) return;
  const int error_number = errno;
  void* frames[64];
  const int depth = backtrace(frames, 64);
  backtrace_symbols_fd(frames, depth, stack_descriptor.load());
  sem_post(&stack_written);
  errno = error_number;
}

timespec ToTimespec(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  return {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
}

void WriteThread(int descriptor, pid_t thread) {
  std::string name;
  try {
    name = ReadWholeFile(fmt::format("/proc/self/task/{}/comm", thread), 4096);
  } catch (const Error&) {
    return;  // it has ended
  }
  if (!name.empty()) name.pop_back();
  dprintf(descriptor, "thread %d (%s):\n", static_cast<int>(thread), name.c_str());
  while (sem_trywait(&stack_written) == 0) {
    // The answer of a thread for which nobody waited any more.
  }
  asked_thread.store(thread);
  if (syscall(SYS_tgkill, getpid(), thread, StackSignal()) != 0) return;
  const timespec deadline = ToTimespec(MonotonicSeconds() + kAnswerSeconds);
  const int result =
      Uninterrupted([&] { return sem_clockwait(&stack_written, CLOCK_MONOTONIC, &deadline); });
  asked_thread.store(0);
  if (result != 0) dprintf(descriptor, "  no answer\n");
}

}  // namespace

void PrepareStacks() {
  sem_init(&stack_written, 0, 0);
  // The first call loads libgcc_s, which a signal handler must not do.
  void* frame;
  backtrace(&frame, 1);
  struct sigaction action = {};
  action.sa_handler = OnStackSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(StackSignal(), &action, nullptr);
}

void WriteStacks(int descriptor, double seconds) {
  const double end = MonotonicSeconds() + seconds;
  stack_descriptor.store(descriptor);
  const pid_t self = ThisThread();
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return;
  while (const dirent* entry = readdir(tasks)) {
    if (MonotonicSeconds() > end) {
      dprintf(descriptor, "no time for the other threads\n");
      break;
    }
    const pid_t thread = atoi(entry->d_name);
    if (thread > 0 && thread != self) WriteThread(descriptor, thread);
  }
  closedir(tasks);
}

}  // namespace syntra
