// SPDX-License-Identifier: Apache-2.0
// How the ranks share a batch, and in which buckets they sum gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// How a global batch is cut up.
struct BatchPartition {
  int64_t batch_size = 0;  // rows, all ranks
  int64_t rows_per_rank = 0;
  int64_t micro_batch_rows = 0;

  int64_t micro_batches() const { return batch_size / micro_batch_rows; }  // of all ranks
  int64_t micro_batches_per_rank() const { return rows_per_rank / micro_batch_rows; }
  // The micro-batches of a rank, out of a batch whose micro-batches are of increasing length. Each
  // rank has short and long ones, and joined over the ranks their order is the same for any number
  // of ranks.
  std::vector<int64_t> MixedMicroBatches(int rank) const;
  // Throws Error(kConfig) if the sizes do not divide, or not as train.reduction needs it.
  static BatchPartition Of(const TrainConfig& config, int ranks);
};

// The elements of the buckets in which ranks add gradients while others are being computed; 0: all
// at once, as on the host and with the reduction EXACT. Ranks that share the optimizer's state can
// share each bucket equally.
int64_t BucketElements(const TrainConfig& config, int ranks, bool on_host);

}  // namespace syntra
