// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

// 64 MiB: by the figures of configs/clusters latency is a tenth of the sum over 8 GPUs of a node,
// and a quarter over 16 nodes. What nothing hides does not follow from it
// (ParameterStore::Buckets).
constexpr int64_t kBucketElements = (int64_t{64} << 20) / sizeof(float);

// 4 MiB: a ring passes shares of a bucket from rank to rank, and with short ones its latency is
// most of its time. Megatron-LM's distributed optimizer has this rule, too: a million parameters a
// rank.
constexpr int64_t kLeastShare = (int64_t{4} << 20) / sizeof(float);

// Whether the ranks' micro-batches are subtrees of the tree over all `leaves` of a step.
bool SharesTree(int64_t leaves, int64_t ranks) {
  return ranks == 1 || (leaves % ranks == 0 && std::has_single_bit(uint64_t(leaves / ranks)));
}

void CheckTreeIsShared(int64_t leaves, int ranks) {
  if (SharesTree(leaves, ranks)) return;
  std::vector<std::string> good;
  for (int64_t count = 1; count <= leaves; ++count) {
    if (SharesTree(leaves, count)) good.push_back(std::to_string(count));
  }
  Fail(ExitCode::kConfig,
       "{} ranks cannot share one tree of {} micro-batches, as train.reduction EXACT needs; "
       "start {} ranks or change train.micro_batch_size",
       ranks, leaves, Join(good, ", "));
}

}  // namespace

BatchPartition BatchPartition::Of(const TrainConfig& config, int ranks) {
  const int64_t batch = config.batch_size();
  if (batch % ranks != 0) {
    Fail(ExitCode::kConfig,
         "train.batch_size {} cannot be shared equally by {} ranks; start a number of ranks that "
         "divides it, or change train.batch_size",
         batch, ranks);
  }
  if (config.reduction() == TrainConfig::EXACT) {
    CheckTreeIsShared(batch / config.micro_batch_size(), ranks);
  }
  const int64_t per_rank = batch / ranks;
  const int64_t micro = config.micro_batch_size() > 0
                            ? std::min<int64_t>(config.micro_batch_size(), per_rank)
                            : per_rank;
  if (per_rank % micro != 0) {
    Fail(ExitCode::kConfig,
         "the {} examples of each of {} ranks cannot be cut into micro-batches of {}; change "
         "train.micro_batch_size",
         per_rank, ranks, micro);
  }
  return {batch, per_rank, micro};
}

// The places of a step are filled in the order of their reversed bits (0, 4, 2, 6, 1, ...). So any
// power-of-two share of neighbouring places has short and long micro-batches.
std::vector<int64_t> BatchPartition::MixedMicroBatches(int rank) const {
  const int bits = std::bit_width(static_cast<uint64_t>(micro_batches() - 1));
  const auto reversed = [&](int64_t place) {
    int64_t value = 0;
    for (int bit = 0; bit < bits; ++bit) value = value << 1 | (place >> bit & 1);
    return value;
  };
  std::vector<int64_t> places(micro_batches());
  std::iota(places.begin(), places.end(), int64_t{0});
  std::ranges::sort(places, {}, reversed);
  const int64_t first = rank * micro_batches_per_rank();
  std::vector<int64_t> mine(micro_batches_per_rank());
  for (int64_t k = 0; k < micro_batches(); ++k) {
    const int64_t place = places[k] - first;
    if (place >= 0 && place < std::ssize(mine)) mine[place] = k;
  }
  return mine;
}

int64_t BucketElements(const TrainConfig& config, int ranks, bool on_host) {
  const bool in_buckets = config.reduction() == TrainConfig::FAST && ranks > 1 && !on_host;
  if (!in_buckets) return 0;
  if (config.sharding() == TrainConfig::NONE) return kBucketElements;
  return std::max(kBucketElements, ranks * kLeastShare);
}

}  // namespace syntra
