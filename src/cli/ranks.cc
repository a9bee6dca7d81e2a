#include "cli/ranks.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "base/failure.h"
#include "base/output.h"

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

[[noreturn]] void Report(Communicator& ranks, const Failure& failure) {
  if (ranks.rank() == 0) {
    PrintError(failure.message);
  } else {
    // The launcher sends TERM before KILL; the handlers of a run would only take note of it.
    std::signal(SIGTERM, SIG_DFL);
    WaitToBeEnded();
    PrintError(failure.message, fmt::format("rank {}: ", ranks.rank()));
  }
  ranks.Abort(failure.code);
  __builtin_unreachable();  // virtual functions lose the attribute
}

}  // namespace

ExitCode WithRanks(const std::function<ExitCode(Communicator&)>& work) {
  int argc = 0;
  char** argv = nullptr;
  const std::unique_ptr<Communicator> ranks = MakeCommunicator(&argc, &argv);
  if (ranks->size() == 1) return work(*ranks);
  try {
    return work(*ranks);
  } catch (...) {
    Report(*ranks, CurrentFailure());
  }
}

}  // namespace syntra
