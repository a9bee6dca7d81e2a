// SPDX-License-Identifier: Apache-2.0
// sort_by_key: a thread counts the keys of the row that come before its own. That is quadratic, but
// the threads of a warp read one key at a time together, and nothing limits the row.
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

struct Rank {
  const int32_t* keys;
  int32_t *order, *rank;  // null: not needed
  int64_t rows, width;
};

__global__ void RankKernel(Rank call) {
  ForThreadItems(call.rows * call.width, [&](int64_t item) {
    const int64_t place = item % call.width;
    const int32_t* row = call.keys + item - place;
    const int32_t key = row[place];
    int32_t before = 0;
    for (int64_t i = 0; i < call.width; ++i) {
      before += row[i] < key || (row[i] == key && i < place) ? 1 : 0;
    }
    if (call.order != nullptr) call.order[item - place + before] = static_cast<int32_t>(place);
    if (call.rank != nullptr) call.rank[item] = before;
  });
}

}  // namespace

std::optional<BoundKernel> cuda_sort_by_key(const OpCall& call) {
  const TensorType keys = call.inputs[0];
  BoundKernel kernel;
  kernel.run = [keys](const KernelArguments& arguments) {
    Launch(arguments, GridFor(keys.shape.size()), RankKernel,
           Rank{Input<int32_t>(arguments, 0), Output<int32_t>(arguments, 0),
                Output<int32_t>(arguments, 1), keys.shape.rows(), keys.shape[-1]});
  };
  return kernel;
}

}  // namespace syntra
