// SPDX-License-Identifier: Apache-2.0
// clip_by_norm: a few numbers. They stay on the device, so that the host need not wait for them.
#include "kernels/cuda/launch.h"
#include "kernels/math/clip.h"
#include "kernels/math/hyperparameters.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

__global__ void ClipKernel(const float* hyper, const float* sum_squares, const float* objective,
                           double limit, int64_t count, float* result) {
  const auto factor = static_cast<float>(ClipFactor(*sum_squares, *objective, limit));
  for (int64_t i = ThreadIndex(); i < count; i += ThreadCount()) {
    result[i] = i == hyper::kGradientScale ? hyper[i] * factor : hyper[i];
  }
}

}  // namespace

std::optional<BoundKernel> cuda_clip_by_norm(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [limit = call.attributes.Number("clip_norm"),
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    Launch(arguments, {1, kWarp}, ClipKernel, Input<float>(arguments, 0),
           Input<float>(arguments, 1), Input<float>(arguments, 2), limit, count,
           Output<float>(arguments, 0));
  };
  return kernel;
}

}  // namespace syntra
