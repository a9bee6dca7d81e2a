// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda.h"

namespace syntra {

GpuReport FindGpus() {
  return {.problem =
              "this build has no GPU support; build again with the CUDA toolkit installed "
              "(cmake -DSYNTRA_CUDA=ON says what is missing)"};
}

std::string CublasLtVersion() { return {}; }

std::unique_ptr<Backend> OpenGpu(int) { Fail(ExitCode::kResources, "{}", FindGpus().problem); }

}  // namespace syntra
