// SPDX-License-Identifier: Apache-2.0
#include "cli/backend.h"

#include "base/log.h"
#include "kernels/cuda.h"

namespace syntra {
namespace {

bool UsesGpu(TrainConfig::Device device, const GpuReport& found) {
  if (device == TrainConfig::CPU) return false;
  if (found.count > 0) return true;
  // A run that was meant for a GPU would take weeks without it.
  if (device == TrainConfig::CUDA || found.broken) {
    Fail(ExitCode::kResources,
         "no GPU to compute on: {}; to compute on the CPU, set train.device: CPU", found.problem);
  }
  return false;
}

}  // namespace

std::shared_ptr<Backend> ChooseBackend(TrainConfig::Device device, const Communicator* ranks) {
  const GpuReport found = device == TrainConfig::CPU ? GpuReport() : FindGpus();
  if (!UsesGpu(device, found)) return {&CpuBackend(), [](Backend*) {}};
  const int rank = ranks ? ranks->rank_on_host() : 0, count = ranks ? ranks->ranks_on_host() : 1;
  std::shared_ptr<Backend> backend = OpenGpu(rank % found.count);
  Log().info("computing on {}", backend->device().name());
  if (rank == 0 && count > found.count) {
    Log().warn("{} ranks of this host share {} GPU{}; start one rank a GPU", count, found.count,
               found.count > 1 ? "s" : "");
  }
  return backend;
}

}  // namespace syntra
