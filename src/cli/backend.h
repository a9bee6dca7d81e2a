// SPDX-License-Identifier: Apache-2.0
// Chooses what a command computes on: a backend, by train.device, and cores where there are ranks.
#pragma once

#include <memory>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"

namespace syntra {

// With GPUs, rank r of a host takes GPU r modulo their number. Each rank takes its cores
// (rank_cores.h). `ranks` may be null: one process alone, with the cores that it has. Throws
// Error(kResources), saying what to do, if a GPU is asked for or was found, but cannot be used.
std::shared_ptr<Backend> ChooseBackend(TrainConfig::Device device, Communicator* ranks);

}  // namespace syntra
