#include "cli/ranks.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/log.h"
#include "dist/launch.h"
#include "train/agreement.h"

namespace syntra {
namespace {

// Most errors (a wrong configuration, a missing file) meet every rank at once: rank 0 speaks for
// all, and the others wait until the launcher ends them. One that nobody ends has an error of its
// own.
constexpr int kSecondsForRankZero = 5;

void WaitToBeEnded() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(kSecondsForRankZero);
  while (Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

std::string Marked(const std::string& message) {
  return message.starts_with("error: ") ? message : "error: " + message;
}

[[noreturn]] void Report(Communicator& ranks, const std::string& message, ExitCode code) {
  Log().flush();
  if (ranks.rank() == 0) {
    fmt::print(stderr, "{}\n", Marked(message));
  } else {
    // The launcher sends TERM before KILL; the handlers of a run would only take note of it.
    std::signal(SIGTERM, SIG_DFL);
    WaitToBeEnded();
    fmt::print(stderr, "rank {}: {}\n", ranks.rank(), Marked(message));
  }
  std::fflush(nullptr);
  ranks.Abort(code);
  __builtin_unreachable();  // virtual functions lose the attribute
}

// Runs the work, or ends the job with its error.
ExitCode RunOrReport(Communicator& ranks, Watchdog& watchdog,
                     const std::function<ExitCode()>& work) {
  const auto report = [&](const std::string& message, ExitCode code) {
    const Watchdog::Phase end(watchdog, RunPhase::kEnd);
    Report(ranks, message, code);
  };
  try {
    return work();
  } catch (const Error& error) {
    report(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    report("out of memory", ExitCode::kResources);
  } catch (const std::exception& error) {
    report(error.what(), ExitCode::kInternal);
  }
  return ExitCode::kInternal;  // not reached: the job has ended
}

}  // namespace

ExitCode WithRanks(const std::string& command, const RankWork& work) {
  const Launch launch = DetectLaunch([](const char* name) { return std::getenv(name); });
  Watchdog watchdog({.rank = launch.rank,
                     .ranks = std::max(1, launch.expected_ranks),
                     .job_directory = launch.job_directory});
  watchdog.Activity("joining the other ranks");
  int argc = 0;
  char** argv = nullptr;
  std::unique_ptr<Communicator> ranks = MakeCommunicator(&argc, &argv);
  watchdog.Activity("starting");
  watchdog.Alive();
  ExitCode code;
  if (ranks->size() == 1) {
    code = work(*ranks, watchdog);
  } else {
    code = RunOrReport(*ranks, watchdog, [&] {
      CheckSameProgram(*ranks, command);
      return work(*ranks, watchdog);
    });
  }
  const Watchdog::Phase end(watchdog, RunPhase::kEnd);
  watchdog.Activity("taking leave of the other ranks");
  ranks.reset();
  return code;
}

}  // namespace syntra
