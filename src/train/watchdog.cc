#include "train/watchdog.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "train/stacks.h"

namespace syntra {
namespace {

constexpr size_t kMeasuredSteps = 101;
constexpr size_t kStepsForMedian = 3;
// Neither follows a link nor waits for the other end of a FIFO.
constexpr int kOwnFile = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* NameOf(RunPhase phase) {
  switch (phase) {
    case RunPhase::kNone:
      return "no phase";
    case RunPhase::kInit:
      return "init";
    case RunPhase::kPrepare:
      return "prepare";
    case RunPhase::kStep:
      return "step";
    case RunPhase::kSave:
      return "save";
    case RunPhase::kEvaluation:
      return "evaluation";
  }
  return "?";
}

// The logger is not used here: the thread that hangs may hold its lock.
void WriteRaw(int descriptor, const std::string& text) {
  // A full disk must not keep the process alive.
  if (write(descriptor, text.data(), text.size()) < 0) return;
}

Path ReportPath(const Path& directory, int rank) {
  return directory / fmt::format("hang-rank-{:04}", rank);
}

// What every rank reports, and which ranks do not: those are the ones to look at.
std::string Summary(const WatchdogOptions& options, int* lowest) {
  std::string lines, silent;
  *lowest = options.rank;
  for (int rank = options.ranks - 1; rank >= 0; --rank) {
    try {
      lines = "  " + ReadWholeFile(ReportPath(options.directory, rank), 65536) + lines;
      *lowest = std::min(*lowest, rank);
    } catch (const Error&) {
      silent = fmt::format(" {}{}", rank, silent);
    }
  }
  if (!silent.empty()) {
    lines += fmt::format(
        "  no report from rank{}: frozen, lost or cut off from the run directory; look at them "
        "first\n",
        silent);
  }
  return "watchdog: ranks that hang\n" + lines;
}

}  // namespace

Watchdog::Watchdog(WatchdogOptions options) : options_(std::move(options)) {
  if (!options_.directory.empty()) unlink(ReportPath(options_.directory, options_.rank).c_str());
  PrepareStacks();
  thread_ = std::thread([this] { Watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Watchdog::Phase::Phase(Watchdog& watchdog, RunPhase phase, int64_t step)
    : watchdog_(watchdog),
      outer_(watchdog.phase_),
      outer_step_(watchdog.step_),
      start_(MonotonicSeconds()) {
  watchdog_.Enter(phase, step);
}

Watchdog::Phase::~Phase() {
  if (watchdog_.phase_ == RunPhase::kStep) {
    const std::lock_guard lock(watchdog_.mutex_);
    watchdog_.step_seconds_.push_back(MonotonicSeconds() - start_);
    if (watchdog_.step_seconds_.size() > kMeasuredSteps) watchdog_.step_seconds_.pop_front();
  }
  watchdog_.Enter(outer_, outer_step_);
}

void Watchdog::Enter(RunPhase phase, int64_t step) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  step_ = step;
  activity_ = "";
  waited_ = 0;
}

void Watchdog::Activity(const char* activity) {
  const std::lock_guard lock(mutex_);
  activity_ = activity;
}

void Watchdog::Alive() {
  const std::lock_guard lock(mutex_);
  waited_ = 0;
}

double Watchdog::Allowed(RunPhase phase) {
  const std::lock_guard lock(mutex_);
  return AllowedLocked(phase);
}

double Watchdog::AllowedLocked(RunPhase phase) const {
  switch (phase) {
    case RunPhase::kNone:
      return INFINITY;
    case RunPhase::kInit:
      return options_.init;
    case RunPhase::kPrepare:
      return options_.prepare;
    case RunPhase::kSave:
      return options_.save;
    case RunPhase::kEvaluation:
      return options_.evaluation;
    case RunPhase::kStep:
      break;
  }
  if (step_seconds_.size() < kStepsForMedian) return std::max(options_.step, options_.first_steps);
  std::vector<double> seconds(step_seconds_.begin(), step_seconds_.end());
  const auto middle = seconds.begin() + seconds.size() / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return std::max(options_.step, options_.step_medians * *middle);
}

std::string Watchdog::Describe() const {
  const std::string where =
      phase_ == RunPhase::kStep ? fmt::format("step {}", step_) : NameOf(phase_);
  return fmt::format("rank {} (process {} on {}) hangs in {}{}{} for {:.0f} s", options_.rank,
                     getpid(), HostName(), where, *activity_ ? ": " : "", activity_, waited_);
}

void Watchdog::Watch() {
  const double shortest = std::min({options_.init, options_.prepare, options_.first_steps,
                                    options_.step, options_.save, options_.evaluation});
  const double tick = std::clamp(shortest / 20, 0.01, 0.5);
  // A wake-up later than this means that the process was suspended, not that it waited.
  const double longest_tick = 4 * tick;
  std::unique_lock lock(mutex_);
  double previous = MonotonicSeconds();
  while (!stopping_) {
    wake_.wait_for(lock, std::chrono::duration<double>(tick));
    const double now = MonotonicSeconds();
    waited_ += std::min(now - previous, longest_tick);
    previous = now;
    if (!stopping_ && waited_ > AllowedLocked(phase_)) {
      const std::string description = Describe();
      // The main thread may wake up and take the lock while the stacks are written.
      lock.unlock();
      Expire(description);
    }
  }
}

void Watchdog::Expire(const std::string& description) {
  const Path& directory = options_.directory;
  int log = STDERR_FILENO;
  if (!directory.empty()) {
    // The report first: the others look for it soon.
    const Path report = ReportPath(directory, options_.rank);
    const int file = open(report.c_str(), O_WRONLY | O_CREAT | O_TRUNC | kOwnFile, 0644);
    if (file >= 0) {
      WriteRaw(file, description + "\n");
      close(file);
    }
    const Path path = directory / fmt::format("rank-{:04}.log", options_.rank);
    log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | kOwnFile, 0644);
    if (log < 0) log = STDERR_FILENO;
    if (log != STDERR_FILENO) WriteRaw(STDERR_FILENO, "watchdog: " + description + "\n");
  }
  WriteRaw(log, "watchdog: " + description + "\n");
  WriteStacks(log);
  if (!directory.empty() && options_.ranks > 1) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.gather));
    int lowest = 0;
    const std::string summary = Summary(options_, &lowest);
    WriteRaw(log, summary);
    if (lowest == options_.rank && log != STDERR_FILENO) WriteRaw(STDERR_FILENO, summary);
  }
  _exit(static_cast<int>(ExitCode::kPeerLost));
}

}  // namespace syntra
