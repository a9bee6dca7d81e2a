// SPDX-License-Identifier: Apache-2.0
// The backend that a command computes on, as train.device says.
#pragma once

#include <memory>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"

namespace syntra {

// GPUs go round the ranks of a host. `ranks` may be null: one process alone. Throws
// Error(kResources), saying what to do, if a GPU is asked for, or is there, that cannot be used.
std::shared_ptr<Backend> ChooseBackend(TrainConfig::Device device, const Communicator* ranks);

}  // namespace syntra
