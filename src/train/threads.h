// SPDX-License-Identifier: Apache-2.0
// How many threads a rank computes with.
#pragma once

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"

namespace syntra {

// train.threads, or the rank's share of the cores that this process may use: the ranks of a host
// share them evenly.
void ChooseThreads(const TrainConfig& config, const Communicator& ranks);

}  // namespace syntra
