// SPDX-License-Identifier: Apache-2.0
// A rank of a job that only counts steps, but has all services of a real run. Usage:
// job_rank DIRECTORY STEPS. Writes its process id to DIRECTORY/pid-RANK after it has installed its
// signal handlers.
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/communicator.h"
#include "run/metrics_log.h"
#include "run/run_lock.h"
#include "run/run_status.h"
#include "run/signals.h"
#include "run/watchdog.h"

namespace syntra {
namespace {

// Stops on request at a step that all ranks agree on.
ExitCode Run(Communicator& communicator, const Path& directory, int64_t steps) {
  std::optional<RunLock> lock;
  if (communicator.rank() == 0) lock.emplace(directory);
  SetUpLogging(communicator.rank(), directory);
  communicator.Barrier();
  Watchdog watchdog({.limits = {.step = 2, .first_steps = 2, .between = 2, .gather = 0.5}});
  watchdog.ReportTo(directory, communicator.rank(), AllGatherLines(communicator, HostName()));
  // A clock that stands still: the ranks' files are compared.
  MetricsLog metrics(directory / fmt::format("metrics-{}.jsonl", communicator.rank()), {0},
                     [] { return WallClock::time_point(); });
  ReplaceFileDurably(directory / fmt::format("pid-{}", communicator.rank()),
                     std::to_string(getpid()));
  std::vector<float> gradients(100000, 1);
  for (int64_t step = 1; step <= steps; ++step) {
    const Watchdog::Phase phase(watchdog, RunPhase::kStep, step);
    usleep(10000);
    watchdog.Activity("all-reduce");
    communicator.AllReduceSum({gradients.data(), {DType::kF32, Shape{100000}}});
    std::array<double, 1> request = {static_cast<double>(PollSignals())};
    communicator.AllReduceMax(request);
    metrics.Write(step, {{"request", request[0]}});
    if (request[0] == static_cast<double>(StopRequest::kSaveAndStop)) return ExitCode::kRequeue;
  }
  return ExitCode::kDone;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  InstallSignalHandlers();
  DieWithParent();
  const std::unique_ptr<Communicator> communicator = MakeCommunicator(&argc, &argv);
  try {
    int64_t steps = 0;
    if (argc != 3 || !ParseInt64(argv[2], &steps)) Fail(ExitCode::kConfig, "wrong arguments");
    return static_cast<int>(Run(*communicator, argv[1], steps));
  } catch (const Error& error) {
    Log().error("{}", error.what());
    communicator->Abort(error.code());
  }
}
