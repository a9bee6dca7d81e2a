// SPDX-License-Identifier: Apache-2.0
// syntra inspect
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/run_config.h"
#include "plan/training_plan.h"
#include "program/executable.h"

namespace syntra {
namespace {

// A value that is alive at the step of a training program that needs most memory.
struct LiveBlock {
  size_t bytes;
  std::string type;     // "f32[4, 512, 768]", or "workspace"
  std::string made_by;  // the op, and its parameters
};

std::string MadeBy(const Program& program, const Allocation& allocation) {
  const Instruction& instruction = program.instructions[allocation.first];
  std::string text = instruction.op->name;
  for (const Value input : instruction.inputs) {
    if (program.IsParameter(input)) text += ' ' + program.info(input).name;
  }
  return text;
}

// Returns all such values, the largest first.
std::vector<LiveBlock> AliveAtPeak(const TrainingPlan& plan) {
  const std::shared_ptr<const Program> program = plan.Training();
  const MemoryPlan memory = PlanOn(plan.backend(), *program, plan.keeps_rounded());
  std::vector<Allocation> alive;
  for (const Allocation& allocation : memory.allocations) {
    if (allocation.first <= memory.peak_instruction && memory.peak_instruction <= allocation.last)
      alive.push_back(allocation);
  }
  std::ranges::sort(alive, std::greater<>(), &Allocation::bytes);
  std::vector<LiveBlock> list;
  for (const Allocation& allocation : alive) {
    const std::string type =
        allocation.value ? ToString(program->info(allocation.value).type) : "workspace";
    list.push_back({allocation.bytes, type, MadeBy(*program, allocation)});
  }
  return list;
}

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

// The parameters that a rank updates, and whose optimizer state it keeps.
struct ShareSizes {
  std::vector<std::string> parameters;  // names, with "[begin, end)" if the rank has a part of one
  int64_t updated = 0;                  // of their elements
  double optimizer_bytes = 0;
};

ShareSizes ShareOf(const TrainingPlan& plan, int rank) {
  const Optimizer& optimizer = plan.optimizer(rank);
  ShareSizes sizes{.optimizer_bytes =
                       static_cast<double>(optimizer.state_elements()) * sizeof(float)};
  for (const Parameter& parameter : plan.parameters().all()) {
    if (!parameter.trainable) continue;
    for (const ElementRange& part : optimizer.HeldOf(parameter)) {
      sizes.updated += part.size();
      sizes.parameters.push_back(
          part.size() == parameter.shape.size()
              ? parameter.name
              : fmt::format("{}[{}, {})", parameter.name, part.begin, part.end));
    }
  }
  return sizes;
}

// The share of each rank. GPUs' shares are as large as those of CPUs, but have a part in each
// bucket of the gradients.
std::vector<ShareSizes> SharesOf(const TrainingPlan& plan) {
  std::vector<ShareSizes> list;
  for (int rank = 0; rank < plan.ranks(); ++rank) list.push_back(ShareOf(plan, rank));
  return list;
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
             SetUpInspectAttention, "runs/a --svg attention.svg", "", RunBy::kAllRanks},
            {"data", "Show examples as text", SetUpInspectData, "my.textproto"},
            {"checkpoint", "List the tensors of a checkpoint", SetUpInspectCheckpoint, "runs/a"},
            {"checkpoints", "List the checkpoints of a run and tell which are intact",
             SetUpInspectCheckpoints, "runs/a"},
            {"memory", "List the tensors in memory at the peak of a training step", SetUpMemory,
             "my.textproto --count 10"},
            {"shards", "List the parameters that each rank updates", SetUpShards,
             "my.textproto --ranks 8"}});
}

}  // namespace syntra
