// SPDX-License-Identifier: Apache-2.0
#include "run/signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"

namespace syntra {
namespace {

constexpr int64_t kInsistNanoseconds = int64_t{5} * 1000000000;

// Signal handlers can reach nothing but globals.
std::atomic<bool> save_requested{false};
std::atomic<bool> stop_requested{false};
std::atomic<int64_t> latest_stop_time{0};  // of an INT or TERM; monotonic, 0: none yet
std::atomic<const char*> interrupt_answer{nullptr};
std::atomic<void (*)()> restore_before_end{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

void OnStop(int signal) {
  const int error_number = errno;
  stop_requested.store(true);
  if (signal != SIGINT && signal != SIGTERM) return;
  const int64_t now = MonotonicNanoseconds();
  const int64_t latest = latest_stop_time.exchange(now);
  if (signal != SIGINT) return;
  if (latest > 0 && now - latest < kInsistNanoseconds) {
    if (const auto restore = restore_before_end.load()) restore();
    _exit(128 + signal);
  }
  if (const char* text = interrupt_answer.load()) StderrLine().PrintBelow(text);
  errno = error_number;
}

void OnSave(int) { save_requested.store(true); }

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// Whether the file asks for something.
bool TakeFile(const Path& path) {
  if (unlink(path.c_str()) == 0) return true;
  const int error_number = errno;
  if (error_number == ENOENT || access(path.c_str(), F_OK) != 0) return false;
  // Somebody made it, so it is obeyed; but it will be found again at every step.
  return WarnOnce(fmt::format("cannot remove {}, so it is obeyed only once: {}", path.string(),
                              SystemErrorText(error_number)));
}

}  // namespace

void InstallSignalHandlers(const char* answer) {
  StderrLine();  // made before a handler needs it
  interrupt_answer.store(answer);
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGXCPU}) Handle(signal, OnStop);
  Handle(SIGUSR2, OnSave);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) Handle(SIGHUP, OnStop);
}

void SetRestore(void (*restore)()) { restore_before_end.store(restore); }

void IgnoreBrokenPipes() { Handle(SIGPIPE, SIG_IGN); }

StopRequest PollSignals() {
  if (stop_requested.load()) return StopRequest::kSaveAndStop;
  return save_requested.exchange(false) ? StopRequest::kSave : StopRequest::kNone;
}

StopRequest PollRequestFiles(const Path& run_directory) {
  const bool save = TakeFile(run_directory / "SAVE");
  if (TakeFile(run_directory / "STOP")) return StopRequest::kSaveAndStop;
  return save ? StopRequest::kSave : StopRequest::kNone;
}

void DieWithParent() {
  if (!std::getenv("OMPI_COMM_WORLD_SIZE")) return;
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl.
  if (getppid() != parent) _exit(static_cast<int>(ExitCode::kPeerLost));
}

}  // namespace syntra
