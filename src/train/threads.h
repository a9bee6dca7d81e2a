// SPDX-License-Identifier: Apache-2.0
// How many threads a process computes with.
#pragma once

#include "configs/schema/config.pb.h"

namespace syntra {

// train.threads, where it is set. Without it they stay as many as they are.
void ChooseThreads(const TrainConfig& config);

}  // namespace syntra
