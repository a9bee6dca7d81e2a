// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/bound_kernel.h"

namespace syntra {

std::optional<BoundKernel> cpu_store(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [bytes = call.inputs[0].bytes()](const KernelArguments& arguments) {
    std::memcpy(arguments.outputs[0], arguments.inputs[0], bytes);
  };
  return kernel;
}

}  // namespace syntra
