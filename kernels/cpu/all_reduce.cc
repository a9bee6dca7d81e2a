// SPDX-License-Identifier: Apache-2.0
// all_reduce: a copy, which the ranks then sum in place.
#include "kernels/cpu/copy.h"
#include "kernels/rank_group.h"

namespace syntra {

std::optional<BoundKernel> cpu_all_reduce(const OpCall& call) {
  OpCall plain = call;
  plain.accumulate = {false};
  BoundKernel kernel = cpu_copy(plain).value();
  kernel.accumulates = false;
  if (call.attributes.Int("ranks") == 1) return kernel;
  kernel.run = [copy = kernel.run, type = call.outputs[0]](const KernelArguments& arguments) {
    copy(arguments);
    arguments.ranks->AllReduceSum({arguments.outputs[0], type});
  };
  return kernel;
}

}  // namespace syntra
