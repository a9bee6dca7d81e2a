// SPDX-License-Identifier: Apache-2.0
#include "dist/communicator.h"

#include <cstdlib>

#include "dist/launch.h"
#include "dist/mpi.h"
#include "dist/self.h"

namespace syntra {

std::unique_ptr<Communicator> MakeCommunicator(int* argc, char*** argv) {
  const Launch launch = DetectLaunch([](const char* name) { return std::getenv(name); });
  if (!launch.use_mpi) return std::make_unique<SelfCommunicator>();
  auto communicator = std::make_unique<MpiCommunicator>(argc, argv);
  CheckWorldSize(launch, communicator->size());
  return communicator;
}

}  // namespace syntra
