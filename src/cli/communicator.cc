// SPDX-License-Identifier: Apache-2.0
#include "cli/communicator.h"

#include <array>
#include <map>

#include "base/log.h"
#include "dist/nccl.h"

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

}  // namespace

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

}  // namespace syntra
