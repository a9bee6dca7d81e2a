// SPDX-License-Identifier: Apache-2.0
// clip_by_norm: a few numbers.
#include <algorithm>

#include "kernels/bound_kernel.h"
#include "kernels/math/clip.h"
#include "kernels/math/hyperparameters.h"
#include "kernels/operands.h"

namespace syntra {

std::optional<BoundKernel> cpu_clip_by_norm(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [limit = call.attributes.Number("clip_norm"),
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    float* hyper = Output<float>(arguments, 0);
    std::copy_n(Input<float>(arguments, 0), count, hyper);
    hyper[hyper::kGradientScale] *= static_cast<float>(
        ClipFactor(*Input<float>(arguments, 1), *Input<float>(arguments, 2), limit));
  };
  return kernel;
}

}  // namespace syntra
