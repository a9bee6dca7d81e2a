// SPDX-License-Identifier: Apache-2.0
// syntra inspect
#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/report_options.h"
#include "cli/run_config.h"
#include "plan/plan_details.h"

namespace syntra {
namespace {

size_t SumOfBytes(std::span<const LiveBlock> blocks) {
  size_t sum = 0;
  for (const LiveBlock& block : blocks) sum += block.bytes;
  return sum;
}

std::string SizeText(size_t bytes) {
  return fmt::format("{:>10}", HumanBytes(static_cast<double>(bytes)));
}

// Prints the first `count` tensors, and what the rest and all of them take.
void PrintAlive(std::span<const LiveBlock> alive, size_t count) {
  for (const LiveBlock& block : alive.first(count)) {
    fmt::print("{}  {:24} {}\n", SizeText(block.bytes), block.type, block.made_by);
  }
  if (count < alive.size()) {
    fmt::print("{}  in {} more\n", SizeText(SumOfBytes(alive.subspan(count))),
               alive.size() - count);
  }
  fmt::print("{}  in all\n", SizeText(SumOfBytes(alive)));
}

void PrintAliveJson(std::span<const LiveBlock> alive, size_t count) {
  Json list = Json::array();
  for (const LiveBlock& block : alive.first(count)) {
    list.push_back({{"bytes", block.bytes}, {"type", block.type}, {"made_by", block.made_by}});
  }
  fmt::print("{}\n", JsonText({{"alive_at_peak", list},
                               {"tensors_at_peak", alive.size()},
                               {"bytes_at_peak", SumOfBytes(alive)}}));
}

Action SetUpMemory(CLI::App& app) {
  const auto options = AddModelOptions(app);
  struct Form {
    size_t count = 30;
    bool json = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--count", form->count, "How many of the tensors, the largest first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", form->json, "Print JSON");
  return [options, form] {
    const auto plan = TrainingPlan::Make(LoadForModel(*options));
    const std::vector<LiveBlock> alive = AliveAtPeak(*plan);
    const size_t count = std::min(form->count, alive.size());
    form->json ? PrintAliveJson(alive, count) : PrintAlive(alive, count);
    return ExitCode::kDone;
  };
}

void PrintShare(int rank, const ShareSizes& share) {
  std::string parameters = "nothing";
  if (!share.parameters.empty()) parameters = share.parameters.front();
  if (share.parameters.size() > 1) parameters += " to " + share.parameters.back();
  fmt::print("rank {:<4} updates {:>15} elements, optimizer state {:>9}: {}\n", rank,
             WithThousands(share.updated), HumanBytes(share.optimizer_bytes), parameters);
}

// How many times the mean of the ranks the largest has to update.
double ImbalanceOf(const std::vector<ShareSizes>& shares) {
  double largest = 0, sum = 0;
  for (const ShareSizes& share : shares) {
    largest = std::max(largest, static_cast<double>(share.updated));
    sum += static_cast<double>(share.updated);
  }
  return largest * static_cast<double>(shares.size()) / sum;
}

Action SetUpShards(CLI::App& app) {
  const auto options = AddModelOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const Config config = LoadForModel(*options);
    const auto plan = TrainingPlan::Make(config, {.ranks = form->ranks});
    const std::vector<ShareSizes> shares = SharesOf(*plan);
    Json list = Json::array();
    for (int rank = 0; rank < form->ranks; ++rank) {
      const ShareSizes& share = shares[rank];
      if (!form->json) PrintShare(rank, share);
      list.push_back({{"rank", rank},
                      {"updated", share.updated},
                      {"optimizer_bytes", share.optimizer_bytes},
                      {"parameters", share.parameters}});
    }
    const double imbalance = ImbalanceOf(shares);
    if (form->json) {
      fmt::print("{}\n", JsonText({{"shards", list}, {"imbalance", imbalance}}));
    } else if (form->ranks > 1 && config.train().sharding() == TrainConfig::NONE) {
      fmt::print("Every rank has all of it; train.sharding=OPTIMIZER_STATE shares it\n");
    } else {
      fmt::print("imbalance {:.3f} (the largest share over the mean)\n", imbalance);
    }
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpInspect(CLI::App& app) {
  return SetUpParts(
      app, {{"attention", "Show which positions the layers of a model read, and how much of each",
             SetUpInspectAttention},
            {"data", "Show examples as text", SetUpInspectData},
            {"checkpoint", "List the tensors of a checkpoint", SetUpInspectCheckpoint},
            {"checkpoints", "List the checkpoints of a run and tell which are intact",
             SetUpInspectCheckpoints},
            {"memory", "List the tensors in memory at the peak of a training step", SetUpMemory},
            {"shards", "List the parameters that each rank updates", SetUpShards}});
}

}  // namespace syntra
