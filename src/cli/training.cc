// SPDX-License-Identifier: Apache-2.0
#include "cli/training.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/output.h"
#include "cli/backend.h"
#include "cli/ranks.h"
#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "dist/nccl.h"
#include "run/signals.h"
#include "train/agreement.h"

namespace syntra {
namespace {

// Why NCCL cannot serve this rank; empty: it can.
std::string Obstacle(const TrainConfig& config, const Device& device) {
  if (device.is_host()) return "it computes on the CPU";
  if (config.reduction() == TrainConfig::EXACT) {
    return "train.reduction EXACT fixes an order of sums, and NCCL has its own";
  }
  try {
    nccl::Load();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// On rank 0, the first obstacle of any rank, with the rank; empty: there is none, and on the
// others.
std::string FirstObstacle(const std::string& obstacle, Communicator& ranks, const Device& device) {
  const std::vector<std::string> obstacles = ranks.Gather(obstacle);
  const std::vector<std::string> devices = ranks.Gather(device.identity());
  std::map<std::string, size_t> first_with;
  for (size_t rank = 0; rank < obstacles.size(); ++rank) {
    if (!obstacles[rank].empty()) return fmt::format("rank {}: {}", rank, obstacles[rank]);
    const auto [other, is_new] = first_with.emplace(devices[rank], rank);
    if (!is_new) {
      return fmt::format("ranks {} and {} share a GPU; start one rank a GPU", other->second, rank);
    }
  }
  return "";
}

// Collective. Returns NCCL over `ranks` if every rank computes on a GPU of its own and
// train.reduction leaves the order of sums open; otherwise `ranks` itself, which copies GPUs'
// memory through the host. With GPUs, rank 0 logs which, and why it is not NCCL. `ranks` and
// `device` outlive it. Throws Error(kPeerLost) if NCCL cannot connect the ranks.
std::shared_ptr<Communicator> ChooseCommunicator(const TrainConfig& config, Communicator& ranks,
                                                 Device& device) {
  const std::shared_ptr<Communicator> through_host(&ranks, [](Communicator*) {});
  if (ranks.size() == 1) return through_host;
  const std::string obstacle = FirstObstacle(Obstacle(config, device), ranks, device);
  // Rank 0 decides for all; whether any rank has a GPU decides whether there is anything to say.
  std::array<double, 2> facts{obstacle.empty() ? 0.0 : 1.0, device.is_host() ? 0.0 : 1.0};
  ranks.AllReduceMax(facts);
  const bool with_nccl = facts[0] == 0, with_gpus = facts[1] == 1;
  if (with_nccl) {
    auto nccl = std::make_shared<NcclCommunicator>(ranks, device, nccl::Load());
    if (ranks.rank() == 0) Log().info("NCCL {} sums the gradients", nccl::Load().Version());
    return nccl;
  }
  if (with_gpus && ranks.rank() == 0) {
    const bool is_wanted = config.reduction() == TrainConfig::EXACT;
    Log().log(is_wanted ? spdlog::level::info : spdlog::level::warn,
              "MPI sums the gradients through the host's memory, not NCCL: {}", obstacle);
  }
  return through_host;
}

}  // namespace

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
      const ExitCode code = train(std::move(start), {*sums, *backend, watchdog});
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
