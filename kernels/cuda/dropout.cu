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
  const int32_t* keys;
  T* y;
  Keep keep;
  uint64_t site;
  int64_t positions, width, group;
  bool per_element, accumulate;

  __device__ EightWords WordsAt(int64_t row, int64_t column) const {
    const RandomKey key = RowKey(keys + row / positions * 2);
    const int64_t start = per_element ? row % positions * (width / group) : 0;
    if (group == 1) return NoiseAt(key, site, start + column);
    EightWords words;
    for (int k = 0; k < kEight; ++k) {
      const auto draw = static_cast<uint64_t>(start + (column + k) / group);
      words.value[k] = RandomAt(key, draw / 4, site)[draw % 4];
    }
    return words;
  }

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t i = row * width + column;
    Eight values = LoadEight(x + i, count);
    Mask(values, WordsAt(row, column), keep);
    StoreResult(values, y + i, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_dropout(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  if (!IsActivation(x) || !call.outputs[0].present()) return std::nullopt;
  const double rate = call.attributes.Number("rate");
  if (rate == 0.0) return cuda_copy(call);  // keys may be absent
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [type = x, keep = Keep::AtRate(rate),
                site = static_cast<uint64_t>(call.attributes.Int("site")),
                group = call.attributes.Int("group"),
                per_element = call.attributes.Flag("per_element"),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const int64_t width = type.shape[2];
    WithActivation(type.dtype, [&](auto element) {
      using T = decltype(element);
      Rowwise(
          arguments, type.shape.rows(), width,
          Dropout<T>{Input<T>(arguments, 0), Input<int32_t>(arguments, 1), Output<T>(arguments, 0),
                     keep, site, type.shape[1], width, group, per_element, accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
