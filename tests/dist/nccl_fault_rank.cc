// SPDX-License-Identifier: Apache-2.0
// A rank that sums on a simulated GPU with the fake NCCL and its planted fault. Usage:
// nccl_fault_rank SECONDS [leave]. SECONDS: what NCCL may take to connect and to end. With `leave`,
// rank 1 ends with an error of its own.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "dist/nccl.h"
#include "kernels/cuda.h"

namespace syntra {
namespace {

void Run(Communicator& host, double seconds, bool leave) {
  const std::unique_ptr<Backend> gpu = OpenGpu(0);
  Device& device = gpu->device();
  NcclCommunicator ranks(
      host, device, nccl::Load(),
      {.connect_seconds = seconds, .poll_seconds = 0.001, .end_seconds = seconds});
  const Buffer values = device.Allocate(4000, "a vector");
  for (int step = 1; step <= 5; ++step) {
    if (leave && step == 3 && host.rank() == 1) Fail(ExitCode::kData, "an error of this rank");
    ranks.AllReduceSum({values.data(), {DType::kF32, Shape{1000}}, &device});
    device.Wait();
    ranks.Barrier();
  }
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  const bool leave = argc > 2 && std::string_view(argv[2]) == "leave";
  const std::unique_ptr<Communicator> host = MakeCommunicator(&argc, &argv);
  try {
    Run(*host, std::atof(argv[1]), leave);
  } catch (const Error& error) {
    fmt::print(stderr, "thrown: {}\n", error.what());
    std::fflush(stderr);
    host->Abort(error.code());
  }
}
