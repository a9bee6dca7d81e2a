// SPDX-License-Identifier: Apache-2.0
// How many threads a process computes with.
#pragma once

#include "configs/schema/config.pb.h"

namespace syntra {

// Sets the number of threads to train.threads, where that is set; else leaves it as it is.
void ChooseThreads(const TrainConfig& config);

}  // namespace syntra
