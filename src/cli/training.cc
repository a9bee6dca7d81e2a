// SPDX-License-Identifier: Apache-2.0
#include "cli/training.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/log.h"
#include "base/output.h"
#include "cli/backend.h"
#include "cli/communicator.h"
#include "cli/ranks.h"
#include "run/signals.h"
#include "train/agreement.h"

namespace syntra {

Action TrainingAction(std::string command, LoadRun load, TrainRun train) {
  return [command = std::move(command), load = std::move(load), train = std::move(train)] {
    // First of all: joining the other ranks takes long enough for a signal to come.
    InstallSignalHandlers(kStopping);
    return WithRanks(command, [&](Communicator& ranks, Watchdog& watchdog) {
      LoadedRun start = load(ranks, watchdog);
      const TrainConfig settings = start.config.train();
      const std::shared_ptr<Backend> backend = ChooseBackend(settings.device(), &ranks);
      CheckSameSettings(ranks, start.config, backend->device().is_host());
      // Ends after the ranks that sum on GPUs have closed their communicator.
      std::optional<Watchdog::Phase> end;
      const std::shared_ptr<Communicator> sums =
          ChooseCommunicator(settings, ranks, backend->device());
      const ExitCode code = train(std::move(start), *sums, *backend, watchdog);
      end.emplace(watchdog, RunPhase::kEnd);
      return code;
    });
  };
}

void PrintResult(const std::string& text) {
  if (WriteAll(STDOUT_FILENO, text)) return;
  Log().warn("cannot write to standard output: {}", SystemErrorText(errno));
}

}  // namespace syntra
