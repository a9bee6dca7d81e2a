// SPDX-License-Identifier: Apache-2.0
// The backend that a command computes on, as train.device says.
#pragma once

#include <memory>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"

namespace syntra {

// With GPUs, rank r of a host takes GPU r, and counting begins anew where there are more ranks than
// GPUs. `ranks` may be null: one process alone. Throws Error(kResources), saying what to do, if a
// GPU is asked for or was found, but cannot be used.
std::shared_ptr<Backend> ChooseBackend(TrainConfig::Device device, const Communicator* ranks);

}  // namespace syntra
