// SPDX-License-Identifier: Apache-2.0
#include "run/watchdog.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/median.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "run/failpoint.h"
#include "run/rank_names.h"
#include "run/stacks.h"

namespace syntra {
namespace {

// Neither follows a link nor waits for the other end of a FIFO.
constexpr int kOwnFile = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr size_t kMeasured = 101;
constexpr size_t kNeededForMedian = 3;
// A file system that is slower than this, in bytes a second, counts as hanging.
constexpr double kSlowestFiles = 10e6;
// How much longer than at best a first step may take: programs are made, memory is touched for the
// first time, and a build for debugging is slow.
constexpr double kFirstStepSeconds = 300, kFirstStepFactor = 100;
// The time for a report on a busy machine, besides the wait for other ranks.
constexpr double kReportSeconds = 5;
// Ranks whose reports a summary repeats.
constexpr size_t kMostReports = 8;
// Longer than any job, and not too long for clocks to count.
constexpr double kLongest = 1e9;

struct NamedPhase {
  RunPhase phase;
  const char* name;
  double WatchdogLimits::*limit;
};
constexpr NamedPhase kPhases[] = {
    {RunPhase::kInit, "init", &WatchdogLimits::init},
    {RunPhase::kPrepare, "prepare", &WatchdogLimits::prepare},
    {RunPhase::kLoad, "load", &WatchdogLimits::load},
    {RunPhase::kStep, "step", &WatchdogLimits::step},
    {RunPhase::kEvaluation, "evaluation", &WatchdogLimits::evaluation},
    {RunPhase::kCompare, "compare", &WatchdogLimits::compare},
    {RunPhase::kSave, "save", &WatchdogLimits::save},
    {RunPhase::kAnswer, "answer", &WatchdogLimits::answer},
    {RunPhase::kBetween, "between", &WatchdogLimits::between},
    {RunPhase::kEnd, "end", &WatchdogLimits::end},
};

const NamedPhase& Named(RunPhase phase) { return kPhases[static_cast<int>(phase)]; }

using NamedLimit = std::pair<std::string, double WatchdogLimits::*>;

// The limits of the phases, then the other limits.
const std::vector<NamedLimit>& NamedLimits() {
  static const std::vector<NamedLimit> all = [] {
    std::vector<NamedLimit> limits;
    for (const NamedPhase& each : kPhases) limits.emplace_back(each.name, each.limit);
    limits.emplace_back("first_steps", &WatchdogLimits::first_steps);
    limits.emplace_back("step_medians", &WatchdogLimits::step_medians);
    limits.emplace_back("gather", &WatchdogLimits::gather);
    return limits;
  }();
  return all;
}

double* FindLimit(WatchdogLimits* limits, std::string_view name) {
  const auto it = std::ranges::find(NamedLimits(), name, &NamedLimit::first);
  return it == NamedLimits().end() ? nullptr : &(limits->*it->second);
}

std::vector<std::string> LimitNames() {
  std::vector<std::string> names;
  for (const NamedLimit& each : NamedLimits()) names.push_back(each.first);
  return names;
}

// For tests: a rank that is frozen as it enters a phase.
void MaybeFreeze(RunPhase phase, int64_t step, int rank, int ranks) {
  const std::string failpoint = std::string("freeze_") + Named(phase).name;
  if (Failpoint(failpoint, step, rank, ranks)) raise(SIGSTOP);
}

Path ReportPath(const Path& directory, int rank) {
  return directory / fmt::format("hang-rank-{:04}", rank);
}

// The file by which a rank that has failed asks the others to wait: its exit code and the seconds.
Path EndingPath(const Path& directory) { return directory / "ending"; }

void SleepSeconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Prints nothing if stderr would keep this thread waiting: a terminal after ^S, a pipe that is
// full.
void PrintIfTaken(std::string_view text) {
  pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&output, 1, 0) == 1 && output.revents & POLLOUT) StderrLine().PrintBelow(text);
}

[[noreturn]] void EndHanging(ExitCode code) { _exit(static_cast<int>(code)); }

// Files and the terminal may be what hangs: then the report must not keep the process alive.
void EndWithin(double seconds, ExitCode code, std::shared_ptr<const std::atomic<bool>> hangs) {
  try {
    std::thread([seconds, code, hangs = std::move(hangs)] {
      SleepSeconds(seconds);
      if (*hangs) EndHanging(code);
    }).detach();
  } catch (const std::system_error&) {
    // No thread can be had; the report must come to its end by itself.
  }
}

void RemoveReport(const Path& directory, int rank) {
  if (!directory.empty()) unlink(ReportPath(directory, rank).c_str());
}

// False if it cannot be written.
bool LeaveFile(const Path& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | kOwnFile, 0644);
  if (file < 0) return false;
  const bool written = WriteAll(file, text);
  return close(file) == 0 && written;
}

// stderr where there is none.
int OpenLog(const Path& path) {
  if (path.empty()) return STDERR_FILENO;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | kOwnFile, 0644);
  return file < 0 ? STDERR_FILENO : file;
}

}  // namespace

WatchdogLimits LimitsFrom(const char* text, WatchdogLimits limits) {
  if (!text || !*text) return limits;
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    double* limit = FindLimit(&limits, name);
    double seconds = 0;
    if (!limit || equals == part.size() || !ParseDouble(part.substr(equals + 1), &seconds) ||
        !(seconds > 0 && seconds <= kLongest)) {
      Fail(ExitCode::kConfig,
           "SYNTRA_WATCHDOG: \"{}\" is not NAME=SECONDS with seconds above 0, at most {:.0f}, and "
           "one of the names {}{}",
           part, kLongest, Join(LimitNames(), ", "), limit ? "" : DidYouMean(name, LimitNames()));
    }
    *limit = seconds;
  }
  return limits;
}

Watchdog::Watchdog(WatchdogOptions options)
    : limits_(LimitsFrom(std::getenv("SYNTRA_WATCHDOG"), options.limits)),
      reporter_{.rank = options.rank,
                .ranks = options.ranks,
                .directory = std::move(options.job_directory)},
      first_steps_(limits_.first_steps) {
  RemoveReport(reporter_.directory, reporter_.rank);
  PrepareStacks();
  MaybeFreeze(RunPhase::kInit, 0, reporter_.rank, reporter_.ranks);
  // Last: nothing may throw while it runs.
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

void Watchdog::ReportTo(const Path& directory, int rank, std::vector<std::string> hosts) {
  RemoveReport(directory, rank);
  if (rank == 0) unlink(EndingPath(directory).c_str());
  const int ranks = static_cast<int>(hosts.size());
  const std::lock_guard lock(mutex_);
  reporter_ = {.rank = rank,
               .ranks = ranks,
               .directory = directory,
               .log = directory / RankLogName(rank),
               .hosts = std::move(hosts)};
}

Watchdog::Phase::Phase(Watchdog& watchdog, RunPhase phase, int64_t step, double bytes)
    : watchdog_(watchdog),
      outer_(watchdog.phase_),
      outer_step_(watchdog.step_),
      outer_bytes_(watchdog.bytes_),
      start_(MonotonicSeconds()) {
  MaybeFreeze(phase, step, watchdog_.reporter_.rank, watchdog_.reporter_.ranks);
  watchdog_.Enter(phase, step, bytes);
}

Watchdog::Phase::~Phase() {
  const RunPhase phase = watchdog_.phase_;
  if (is_measured_ && (phase == RunPhase::kStep || phase == RunPhase::kEvaluation)) {
    const std::lock_guard lock(watchdog_.mutex_);
    std::deque<double>& seconds =
        phase == RunPhase::kStep ? watchdog_.step_seconds_ : watchdog_.evaluation_seconds_;
    seconds.push_back(MonotonicSeconds() - start_);
    if (seconds.size() > kMeasured) seconds.pop_front();
  }
  watchdog_.Enter(outer_ == RunPhase::kInit ? RunPhase::kBetween : outer_, outer_step_,
                  outer_bytes_);
}

void Watchdog::Enter(RunPhase phase, int64_t step, double bytes) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  step_ = step;
  bytes_ = bytes;
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

void Watchdog::ExpectStep(double seconds) {
  if (!std::isfinite(seconds)) return;
  const std::lock_guard lock(mutex_);
  first_steps_ = std::min(limits_.first_steps, kFirstStepSeconds + kFirstStepFactor * seconds);
}

void Watchdog::EndsWith(ExitCode code, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    ending_ = {.code = code};
  }
  // Not under the lock, which the watchdog's thread needs if files hang.
  if (reporter_.directory.empty() || reporter_.ranks == 1) return;
  LeaveFile(EndingPath(reporter_.directory),
            fmt::format("{} {:.0f}", static_cast<int>(code), seconds));
}

double Watchdog::Allowed(RunPhase phase, double bytes) {
  const std::lock_guard lock(mutex_);
  return AllowedLocked(phase, bytes);
}

double Watchdog::AllowedLocked(RunPhase phase, double bytes) const {
  const double limit = limits_.*Named(phase).limit;
  if (phase == RunPhase::kStep) return AllowedByMedian(step_seconds_, limit);
  if (phase == RunPhase::kEvaluation) return AllowedByMedian(evaluation_seconds_, limit);
  return limit + bytes / kSlowestFiles;
}

double Watchdog::AllowedByMedian(const std::deque<double>& measured, double least) const {
  if (measured.size() < kNeededForMedian) return std::max(least, first_steps_);
  return std::max(least, limits_.step_medians * Median({measured.begin(), measured.end()}));
}

std::string Watchdog::Describe() const {
  std::string where = Named(phase_).name;
  if (phase_ == RunPhase::kBetween) where = "the time between phases";
  if (phase_ == RunPhase::kStep) where = fmt::format("step {}", step_);
  if (phase_ == RunPhase::kEvaluation || phase_ == RunPhase::kSave) {
    where += fmt::format(" at step {}", step_);
  }
  return fmt::format("rank {} (process {} on {}) hangs in {}{}{} for {:.0f} s", reporter_.rank,
                     getpid(), HostName(), where, *activity_ ? ": " : "", activity_, waited_);
}

void Watchdog::Watch() {
  double shortest = INFINITY;
  for (const NamedPhase& each : kPhases) shortest = std::min(shortest, limits_.*each.limit);
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
    const std::optional<ErrorEnd> ending = ending_;
    const double allowed = AllowedLocked(phase_, bytes_) + (ending ? ending->seconds : 0);
    if (stopping_ || waited_ <= allowed) continue;
    const std::string description = Describe();
    // The main thread may wake up and take the lock while the stacks are written. If it then calls
    // ReportTo, this report stays where it began.
    const Reporter reporter = reporter_;
    lock.unlock();
    const ErrorEnd found = Expire(reporter, description, ending);
    lock.lock();
    if (!ending_) ending_ = found;
  }
}

// Reads the file that a failed rank has left. On a full disk the file may exist without its
// content.
std::optional<Watchdog::ErrorEnd> Watchdog::FindEnding(const Reporter& reporter) const {
  if (reporter.directory.empty() || reporter.ranks == 1) return std::nullopt;
  try {
    const std::optional<std::string> text = ReadOwnFile(EndingPath(reporter.directory), 100);
    if (!text) return std::nullopt;
    const std::vector<std::string> parts = Split(*text, ' ');
    int64_t code = 0, seconds = 0;
    if (parts.size() == 2 && ParseInt64(parts[0], &code) && code > 0 && code < 128 &&
        ParseInt64(parts[1], &seconds) && seconds >= 0 && seconds <= kLongest) {
      return ErrorEnd{static_cast<ExitCode>(code), static_cast<double>(seconds)};
    }
    return ErrorEnd{.seconds = limits_.save};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Returns only where another rank has failed and nobody has waited for that yet. The logger is not
// used here, since the thread that hangs may hold its lock. What cannot be written is lost: a full
// disk must not keep the process alive.
Watchdog::ErrorEnd Watchdog::Expire(const Reporter& reporter, const std::string& description,
                                    const std::optional<ErrorEnd>& ending) const {
  const double start = MonotonicSeconds();
  const ExitCode code = ending.value_or(ErrorEnd()).code;
  const auto hangs = std::make_shared<std::atomic<bool>>(true);
  EndWithin(limits_.gather + kReportSeconds, code, hangs);
  if (const auto found = ending ? std::nullopt : FindEnding(reporter)) {
    *hangs = false;
    return *found;
  }
  const std::string line = "watchdog: " + description + "\n";
  PrintIfTaken(line);
  // Before the log: the others look for it soon.
  const bool reported =
      !reporter.directory.empty() &&
      LeaveFile(ReportPath(reporter.directory, reporter.rank), description + "\n");
  const int log = OpenLog(reporter.log);
  if (log != STDERR_FILENO) WriteAll(log, line);
  WriteStacks(log, limits_.gather);
  if (reported && reporter.ranks > 1) {
    SleepSeconds(start + limits_.gather - MonotonicSeconds());
    WriteSummary(reporter, log);
  }
  EndHanging(code);
}

// Writes the reports of the ranks, and which ranks have none: those are the ones to look at. The
// lowest rank with a report does this for all, since each reads as many files as there are ranks.
void Watchdog::WriteSummary(const Reporter& reporter, int log) {
  std::string lines;
  std::vector<int> reported, silent;
  for (int rank = 0; rank < reporter.ranks; ++rank) {
    const Path report = ReportPath(reporter.directory, rank);
    if (rank < reporter.rank && Exists(report)) return;
    try {
      const std::string text = ReadWholeFile(report, 65536);
      reported.push_back(rank);
      if (reported.size() <= kMostReports) lines += "  " + text;
    } catch (const Error&) {
      silent.push_back(rank);
    }
  }
  if (reported.size() > kMostReports) {
    lines += fmt::format("  and {}, see {}/hang-rank-*\n",
                         NameRanks(std::span(reported).subspan(kMostReports), reporter.hosts),
                         reporter.directory.string());
  }
  if (!silent.empty()) {
    lines += fmt::format(
        "  no report from {}: frozen, lost, {}; look at them first\n",
        NameRanks(silent, reporter.hosts),
        reporter.log.empty() ? "or on another machine" : "or cut off from the run directory");
  } else if (std::ranges::adjacent_find(reporter.hosts, std::ranges::not_equal_to()) !=
             reporter.hosts.end()) {
    lines +=
        "  every rank reports, so none is frozen: look at the network between the hosts first\n";
  }
  const std::string summary = "watchdog: ranks that hang\n" + lines;
  if (log != STDERR_FILENO) WriteAll(log, summary);
  PrintIfTaken(summary);
}

}  // namespace syntra
