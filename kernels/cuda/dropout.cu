// SPDX-License-Identifier: Apache-2.0
// dropout: x times a random mask, per element or shared by all positions of an example; `group`
// consecutive elements of a position may share one draw. It is its own gradient.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Dropout {
  const T* x;
  T* y;
  KeyedMask mask;
  bool accumulate;

  __device__ EightWords WordsAt(int64_t row, int64_t column) const {
    const RandomKey key = RowKey(mask.keys + row / mask.positions * 2);
    const int64_t start = mask.FirstDraw(row);
    if (mask.group == 1) return NoiseAt(key, mask.site, start + column);
    EightWords words;
    for (int k = 0; k < kEight; ++k) {
      const auto draw = static_cast<uint64_t>(start + (column + k) / mask.group);
      words.value[k] = RandomAt(key, draw / 4, mask.site)[draw % 4];
    }
    return words;
  }

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t i = row * mask.width + column;
    Eight values = LoadEight(x + i, count);
    Mask(values, WordsAt(row, column), mask.keep);
    StoreResult(values, y + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_dropout(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  if (call.attributes.Number("rate") == 0.0) return cuda_copy(call);  // keys may be absent
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [type = x,
                unkeyed = TensorMask::Of(call.attributes, x.shape, call.attributes.Int("group")),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const KeyedMask mask{unkeyed, Input<int32_t>(arguments, 1)};
    WithActivation(type.dtype, [&](auto element) {
      using T = decltype(element);
      Rowwise(arguments, type.shape.rows(), mask.width,
              Dropout<T>{Input<T>(arguments, 0), Output<T>(arguments, 0), mask, accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
