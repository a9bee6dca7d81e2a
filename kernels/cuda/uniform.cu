// SPDX-License-Identifier: Apache-2.0
// uniform: random numbers in (0, 1) by the keys of the rows.
#include "kernels/cuda/noise.h"
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

struct Uniform {
  const int32_t* keys;
  float* y;
  uint64_t site;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const EightWords words = NoiseAt(RowKey(keys + 2 * row), site, column);
    Eight values;
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[k] = OpenUniform(words.value[k]);
    StoreEight(values, y + row * width + column, count);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_uniform(const OpCall& call) {
  const Shape& y = call.outputs[0].shape;
  BoundKernel kernel;
  kernel.run = [rows = y[0], width = y.size() / y[0],
                site = static_cast<uint64_t>(call.attributes.Int("site"))](
                   const KernelArguments& arguments) {
    Rowwise(arguments, rows, width,
            Uniform{Input<int32_t>(arguments, 0), Output<float>(arguments, 0), site, width});
  };
  return kernel;
}

}  // namespace syntra
