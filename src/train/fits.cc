// SPDX-License-Identifier: Apache-2.0
#include "train/fits.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "train/step.h"

namespace syntra {
namespace {

// What is written beside training, of `ranks` ranks with rank 0 among them. It copies all of the
// state or, where ranks share it, the parameters and, as every rank does, its share.
double CopyBytes(const RunSizes& sizes, int ranks) {
  if (!sizes.asynchronous_saves) return 0;
  return sizes.is_sharded ? sizes.parameter_bytes + ranks * sizes.optimizer_bytes
                          : sizes.checkpoint_bytes;
}

// What the ranks that share a limit hold together.
double Needed(const RunSizes& sizes, const MemoryLimit& limit, const RankPlaces& places) {
  if (!places.backend->device().is_host()) return sizes.total_bytes();
  const int ranks = limit.shared ? places.ranks_on_host : 1;
  return ranks * sizes.total_bytes() + CopyBytes(sizes, ranks);
}

bool Fits(const RunSizes& sizes, const std::vector<MemoryLimit>& limits, const RankPlaces& places) {
  return std::ranges::all_of(limits, [&](const MemoryLimit& limit) {
    return Needed(sizes, limit, places) <= static_cast<double>(limit.bytes);
  });
}

bool CanBeShared(const TrainConfig& config, int ranks) {
  try {
    BatchPartition::Of(config, ranks);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The largest micro-batch, at most `rows`, with which the run fits; 0: none.
int64_t FittingRows(Config config, int64_t rows, const std::vector<MemoryLimit>& limits,
                    const RankPlaces& places) {
  const int64_t per_rank = config.train().batch_size() / places.ranks;
  for (; rows > 0; --rows) {
    if (per_rank % rows != 0) continue;
    config.mutable_train()->set_micro_batch_size(static_cast<int32_t>(rows));
    if (!CanBeShared(config.train(), places.ranks)) continue;
    if (Fits(RunSizesOf(config, places.ranks, *places.backend), limits, places)) return rows;
  }
  return 0;
}

std::string Remedy(Config config, const RunSizes& sizes, const std::vector<MemoryLimit>& limits,
                   const RankPlaces& places) {
  if (const int64_t rows = FittingRows(config, sizes.rows - 1, limits, places); rows > 0) {
    return fmt::format("train.micro_batch_size={} fits", rows);
  }
  // What costs least first; each beside those before.
  std::string settings;
  const auto rows_with = [&](const char* setting) {
    settings += (settings.empty() ? "" : " and ") + std::string(setting);
    return FittingRows(config, sizes.rows, limits, places);
  };
  const auto fits = [&](int64_t rows) {
    return fmt::format("{} with train.micro_batch_size={} fits", settings, rows);
  };
  if (sizes.asynchronous_saves && places.backend->device().is_host()) {
    config.mutable_checkpoint()->set_asynchronous(false);
    if (const int64_t rows = rows_with("checkpoint.asynchronous=false")) return fits(rows);
  }
  if (places.ranks > 1 && config.train().sharding() == TrainConfig::NONE) {
    config.mutable_train()->set_sharding(TrainConfig::OPTIMIZER_STATE);
    if (const int64_t rows = rows_with("train.sharding=OPTIMIZER_STATE")) return fits(rows);
  }
  if (!config.train().recompute()) {
    config.mutable_train()->set_recompute(true);
    if (const int64_t rows = rows_with("train.recompute=true")) return fits(rows);
  }
  return fmt::format(
      "no micro-batch fits, even with train.recompute: {}shorter inputs (data.input_length) or a "
      "smaller model take less",
      places.ranks_on_host > 1 ? "fewer ranks on a host, " : "");
}

std::string Parts(const RunSizes& sizes) {
  std::string text = fmt::format(
      "parameters {}, gradients {}, optimizer state {}, activations of {} examples at a time {}",
      HumanBytes(sizes.parameter_bytes), HumanBytes(sizes.gradient_bytes),
      HumanBytes(sizes.optimizer_bytes), WithThousands(sizes.rows),
      HumanBytes(sizes.activation_bytes));
  if (sizes.evaluation_bytes > sizes.activation_bytes) {
    text += fmt::format(", of an evaluation {}", HumanBytes(sizes.evaluation_bytes));
  }
  if (sizes.asynchronous_saves) {
    text += fmt::format(", the copy that is saved {}", HumanBytes(CopyBytes(sizes, 1)));
  }
  return text;
}

}  // namespace

std::string CheckFits(const Config& config, const RunSizes& sizes, const RankPlaces& places,
                      const std::vector<MemoryLimit>& host_limits) {
  const Device& device = places.backend->device();
  std::vector<MemoryLimit> limits = host_limits;
  if (!device.is_host()) {
    limits = {{static_cast<int64_t>(device.free_bytes()),
               fmt::format("the free memory of {} is", device.name()), false}};
  }
  const auto tightest = std::ranges::min_element(limits, {}, [&](const MemoryLimit& limit) {
    return static_cast<double>(limit.bytes) - Needed(sizes, limit, places);
  });
  SYNTRA_CHECK(tightest != limits.end());
  const std::string needed = HumanBytes(Needed(sizes, *tightest, places));
  const std::string there = HumanBytes(static_cast<double>(tightest->bytes));
  if (Fits(sizes, limits, places)) {
    return fmt::format("needs {}, {} {}", needed, tightest->who, there);
  }
  const bool together = tightest->shared && places.ranks_on_host > 1;
  Fail(ExitCode::kResources, "{} need{} {} of memory, but {} {}: {}{}; {}",
       together ? fmt::format("the {} ranks of this host", places.ranks_on_host) : "the run",
       together ? "" : "s", needed, tightest->who, there, together ? "each has " : "", Parts(sizes),
       Remedy(config, sizes, limits, places));
}

}  // namespace syntra
