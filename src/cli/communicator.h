// SPDX-License-Identifier: Apache-2.0
// Chooses the communicator that sums the gradients of a command's ranks.
#pragma once

#include <memory>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"

namespace syntra {

// Collective. Returns NCCL over `ranks` if every rank computes on a GPU of its own and
// train.reduction leaves the order of sums open; otherwise `ranks` itself, which copies GPUs'
// memory through the host. With GPUs, rank 0 logs which, and why it is not NCCL. `ranks` and
// `device` outlive it. Throws Error(kPeerLost) if NCCL cannot connect the ranks.
std::shared_ptr<Communicator> ChooseCommunicator(const TrainConfig& config, Communicator& ranks,
                                                 Device& device);

}  // namespace syntra
