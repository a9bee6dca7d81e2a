// SPDX-License-Identifier: Apache-2.0
#include "cli/backend.h"

#include "base/log.h"
#include "cli/rank_cores.h"
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

std::shared_ptr<Backend> ChooseBackend(TrainConfig::Device device, Communicator* ranks) {
  const GpuReport found = device == TrainConfig::CPU ? GpuReport() : FindGpus();
  const bool on_gpu = UsesGpu(device, found);
  const int rank = ranks ? ranks->rank_on_host() : 0;
  const int gpu = on_gpu ? rank % found.count : 0;
  // Before anything is allocated: memory is of the NUMA node of the core that first touches it.
  if (ranks) TakeCores(*ranks, on_gpu ? found.addresses[gpu] : "");
  if (!on_gpu) return {&CpuBackend(), [](Backend*) {}};
  std::shared_ptr<Backend> backend = OpenGpu(gpu);
  Log().info("computing on {}", backend->device().name());
  return backend;
}

}  // namespace syntra
