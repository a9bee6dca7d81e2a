// SPDX-License-Identifier: Apache-2.0
#include "train/threads.h"

#include "core/thread.h"

namespace syntra {

void ChooseThreads(const TrainConfig& config) {
  if (config.threads() > 0) SetThreadCount(config.threads());
}

}  // namespace syntra
