#include "cli/ranks.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/log.h"

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

}  // namespace

ExitCode WithRanks(const std::function<ExitCode(Communicator&)>& work) {
  int argc = 0;
  char** argv = nullptr;
  const std::unique_ptr<Communicator> ranks = MakeCommunicator(&argc, &argv);
  if (ranks->size() == 1) return work(*ranks);
  try {
    return work(*ranks);
  } catch (const Error& error) {
    Report(*ranks, error.what(), error.code());
  } catch (const std::bad_alloc&) {
    Report(*ranks, "out of memory", ExitCode::kResources);
  } catch (const std::exception& error) {
    Report(*ranks, error.what(), ExitCode::kInternal);
  }
}

}  // namespace syntra
