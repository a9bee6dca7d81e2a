// SPDX-License-Identifier: Apache-2.0
#include "cli/ranks.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/failure.h"
#include "base/output.h"
#include "dist/launch.h"
#include "train/agreement.h"

namespace syntra {
namespace {

constexpr int kSecondsForRankZero = 5;

void WaitToBeEnded() {
  // The launcher sends TERM before KILL; the handlers of a run would only take note of it.
  std::signal(SIGTERM, SIG_DFL);
  const auto end = Clock::now() + std::chrono::seconds(kSecondsForRankZero);
  while (Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

[[noreturn]] void Report(Communicator& ranks, const Failure& failure) {
  PrintErrorOfRank(ranks.rank(), failure.message);
  ranks.Abort(failure.code);
  __builtin_unreachable();  // virtual functions lose the attribute
}

// Runs the work, or ends the job with its error.
ExitCode RunOrReport(Communicator& ranks, Watchdog& watchdog,
                     const std::function<ExitCode()>& work) {
  try {
    return work();
  } catch (...) {
    const Watchdog::Phase end(watchdog, RunPhase::kEnd);
    Report(ranks, CurrentFailure());
  }
}

}  // namespace

ExitCode WithRanks(const std::string& command, const RankWork& work) {
  const Launch launch = DetectLaunch();
  if (launch.rank > 0 && !CanConnect(launch)) return ExitCode::kConfig;  // rank 0 says so
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
  watchdog.Activity("leaving the other ranks");
  ranks.reset();
  return code;
}

void PrintErrorOfRank(int rank, const std::string& message) {
  if (rank == 0) return PrintError(message);
  WaitToBeEnded();
  PrintError(message, fmt::format("rank {}: ", rank));
}

}  // namespace syntra
