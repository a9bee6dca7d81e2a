// SPDX-License-Identifier: Apache-2.0
// A rank that sums on a simulated GPU with the fake NCCL and its planted fault. Usage:
// nccl_fault_rank SECONDS [leave|finish]. SECONDS: what NCCL may take to connect and to end. With
// `leave`, rank 1 ends with an error of its own. With `finish`, a rank that fails first does
// something that takes longer.
#include <cstdio>
#include <string_view>

#include "dist/nccl.h"
#include "kernels/cuda.h"
#include "tests/base/waiting.h"

namespace syntra {
namespace {

void Sum(Communicator& ranks, Device& device, bool leave) {
  const Buffer values = device.Allocate(4000, "a vector");
  for (int step = 1; step <= 5; ++step) {
    if (leave && step == 3 && ranks.rank() == 1) Fail(ExitCode::kData, "an error of this rank");
    ranks.AllReduceSum({values.data(), {DType::kF32, Shape{1000}}, &device});
    device.Wait();
    ranks.Barrier();
  }
}

void Run(Communicator& host, double seconds, std::string_view mode) {
  const std::unique_ptr<Backend> gpu = OpenGpu(0);
  Device& device = gpu->device();
  NcclCommunicator ranks(
      host, device, nccl::Load(),
      {.connect_seconds = seconds, .poll_seconds = 0.001, .end_seconds = seconds});
  try {
    Sum(ranks, device, mode == "leave");
  } catch (const Error&) {
    if (mode != "finish") throw;
    ranks.AbortsWithin(kHangSeconds);
    SleepSeconds(3 * seconds);
    fmt::print(stderr, "finished\n");
    throw;
  }
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  const std::string_view mode = argc > 2 ? argv[2] : "";
  const std::unique_ptr<Communicator> host = MakeCommunicator(&argc, &argv);
  try {
    Run(*host, std::atof(argv[1]), mode);
  } catch (const Error& error) {
    fmt::print(stderr, "thrown: {}\n", error.what());
    std::fflush(stderr);
    host->Abort(error.code());
  }
}
