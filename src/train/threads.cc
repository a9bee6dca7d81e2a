// SPDX-License-Identifier: Apache-2.0
#include "train/threads.h"

#include <algorithm>

#include "base/host.h"
#include "core/thread.h"

namespace syntra {

void ChooseThreads(const TrainConfig& config, const Communicator& ranks) {
  const int share = std::max(1, ProcessorCount() / ranks.ranks_on_host());
  SetThreadCount(config.threads() > 0 ? config.threads() : share);
}

}  // namespace syntra
