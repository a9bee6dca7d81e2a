// SPDX-License-Identifier: Apache-2.0
#include "plan/fits.h"

#include <algorithm>

#include "base/text.h"
#include "plan/recompute_choices.h"

namespace syntra {
namespace {

// The bytes that are needed of a memory, and its limit.
struct Need {
  double bytes;
  MemoryLimit limit;
  bool is_staging;  // of the host's memory, by a run that computes on GPUs

  double left() const { return static_cast<double>(limit.bytes) - bytes; }
};

// Where a run would compute, and what it may take there.
struct RunPlace {
  int ranks;
  int ranks_on_host;
  Backend& backend;
  std::vector<MemoryLimit> host_limits;

  bool on_host() const { return backend.device().is_host(); }
  int Together(const MemoryLimit& limit) const { return limit.shared ? ranks_on_host : 1; }
  // The needs of all memories, a GPU's memory first.
  std::vector<Need> NeedsOf(const MemoryNeeds& needs) const {
    std::vector<Need> all;
    const Device& device = backend.device();
    if (!on_host()) {
      const MemoryLimit limit{static_cast<int64_t>(device.free_bytes()),
                              fmt::format("the free memory of {} is", device.name()), false};
      all.push_back({needs.total(), limit, false});
    }
    for (const MemoryLimit& limit : host_limits) {
      const int together = Together(limit);
      const double computed = together * needs.total() + needs.copies(together);
      const double held = on_host() ? computed : needs.on_host_of_gpus(together);
      all.push_back({held + together * kProcessBytes, limit, !on_host()});
    }
    return all;
  }
  // The need that leaves the least memory free, or lacks the most.
  Need Tightest(const MemoryNeeds& needs) const {
    const std::vector<Need> all = NeedsOf(needs);
    SYNTRA_CHECK(!all.empty());
    return *std::ranges::min_element(all, {}, &Need::left);
  }
  bool Holds(const MemoryNeeds& needs) const { return Tightest(needs).left() >= 0; }
};

bool CanBeShared(const TrainConfig& config, int ranks) {
  try {
    BatchPartition::Of(config, ranks);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The largest micro-batch, at most `rows`, with which the run fits; 0: none.
int64_t FittingRows(Config config, int64_t rows, const RunPlace& place) {
  const int64_t per_rank = config.train().batch_size() / place.ranks;
  for (; rows > 0; --rows) {
    if (per_rank % rows != 0) continue;
    config.mutable_train()->set_micro_batch_size(static_cast<int32_t>(rows));
    if (!CanBeShared(config.train(), place.ranks)) continue;
    const auto plan = TrainingPlan::Make(config, {.ranks = place.ranks, .backend = &place.backend});
    if (place.Holds(plan->memory())) return rows;
  }
  return 0;
}

// `lacking`: what the run does not get enough of.
std::string Remedy(const TrainingPlan& plan, const RunPlace& place, const Need& lacking) {
  Config config = plan.config();
  const int64_t planned_rows = plan.shape().rows;
  if (const int64_t rows = FittingRows(config, planned_rows - 1, place); rows > 0) {
    return fmt::format("train.micro_batch_size={} fits", rows);
  }
  // The settings that cost least come first; each is added to those before it.
  std::vector<std::string> settings;
  const auto rows_with = [&](const std::string& setting) {
    settings.push_back(setting);
    return FittingRows(config, planned_rows, place);
  };
  const auto fits = [&](int64_t rows) {
    return fmt::format("{} with train.micro_batch_size={} fits", Join(settings, " and "), rows);
  };
  // The copy that is saved lies in the memory of the host.
  if (config.checkpoint().asynchronous() && (place.on_host() || lacking.is_staging)) {
    config.mutable_checkpoint()->set_asynchronous(false);
    if (const int64_t rows = rows_with("checkpoint.asynchronous=false")) return fits(rows);
  }
  if (place.ranks > 1 && config.train().sharding() == TrainConfig::NONE) {
    config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
    if (const int64_t rows = rows_with("train.sharding=OPTIMIZER_STATE")) return fits(rows);
  }
  for (const TrainConfig::Recompute choice : CostlierThan(config.train().recompute())) {
    config.mutable_train()->set_recompute(choice);
    const std::string setting = "train.recompute=" + TrainConfig::Recompute_Name(choice);
    if (const int64_t rows = rows_with(setting)) return fits(rows);
    settings.pop_back();  // the next one takes its place
  }
  return fmt::format(
      "no micro-batch fits, even with train.recompute; use {}shorter inputs (data.input_length) or "
      "a smaller model",
      place.ranks_on_host > 1 ? "fewer ranks on a host, " : "");
}

std::string Parts(const TrainingPlan& plan) {
  const MemoryNeeds& needs = plan.memory();
  std::string text = fmt::format(
      "parameters {}, gradients {}, optimizer state {}, activations of {} examples at a time {}",
      HumanBytes(needs.parameters + needs.rounded), HumanBytes(needs.gradients),
      HumanBytes(needs.optimizer), WithThousands(plan.shape().rows), HumanBytes(needs.training));
  if (needs.evaluation > needs.training) {
    text += fmt::format(", of an evaluation {}", HumanBytes(needs.evaluation));
  }
  if (needs.decoding > std::max(needs.training, needs.evaluation)) {
    text += fmt::format(", of decoding {}", HumanBytes(needs.decoding));
  }
  if (needs.decoding_caches > 0) {
    text += fmt::format(", caches for decoding {}", HumanBytes(needs.decoding_caches));
  }
  if (needs.copies(1) > 0) {
    text += fmt::format(", the copy that is saved {}", HumanBytes(needs.copies(1)));
  }
  return text + fmt::format(", the program itself {}", HumanBytes(kProcessBytes));
}

std::string StagedParts(const MemoryNeeds& needs) {
  return fmt::format(
      "while a checkpoint is read or written, parameters {} and optimizer state {}; the copy that "
      "is saved {}",
      HumanBytes(needs.parameters), HumanBytes(needs.optimizer), HumanBytes(needs.copies(1)));
}

}  // namespace

std::string CheckFits(const TrainingPlan& plan, int ranks_on_host,
                      const std::vector<MemoryLimit>& host_limits) {
  const RunPlace place{plan.ranks(), ranks_on_host, plan.backend(), host_limits};
  const MemoryNeeds& needs = plan.memory();
  const Need tightest = place.Tightest(needs);
  if (tightest.left() >= 0) {
    const Need told = place.on_host() ? tightest : place.NeedsOf(needs).front();
    return fmt::format("needs {}, {} {}", HumanBytes(told.bytes), told.limit.who,
                       HumanBytes(static_cast<double>(told.limit.bytes)));
  }
  const bool together = place.Together(tightest.limit) > 1;
  Fail(ExitCode::kResources, "{} need{} {} of {}memory, but {} {}: {}{}; {}",
       together ? fmt::format("the {} ranks of this host", ranks_on_host) : "the run",
       together ? "" : "s", HumanBytes(tightest.bytes), tightest.is_staging ? "the host's " : "",
       tightest.limit.who, HumanBytes(static_cast<double>(tightest.limit.bytes)),
       together ? "each has " : "", tightest.is_staging ? StagedParts(needs) : Parts(plan),
       Remedy(plan, place, tightest));
}

}  // namespace syntra
