#include "cli/ranks.h"

#include <unistd.h>

#include <cstdio>

#include "base/log.h"

namespace syntra {
namespace {

// Most errors (a wrong configuration, a missing file) meet every rank at once: rank 0 speaks for all,
// and the others wait a moment before they take it for their own.
constexpr unsigned kSecondsForRankZero = 2;

[[noreturn]] void Report(Communicator& ranks, const std::string& message, ExitCode code) {
  const bool marked = message.starts_with("error: ");
  Log().flush();
  if (ranks.rank() == 0) {
    fmt::print(stderr, "{}{}\n", marked ? "" : "error: ", message);
  } else {
    sleep(kSecondsForRankZero);
    fmt::print(stderr, "error: rank {}: {}\n", ranks.rank(), message);
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
