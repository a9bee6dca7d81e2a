// SPDX-License-Identifier: Apache-2.0
// gather_rows: copies of rows. gather_rows_grad: the thread of a row of the result looks through
// all numbers and adds, in their order, the rows that are its own.
#include "kernels/cuda/rows.h"
#include "kernels/gather_call.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct GatherRows {
  GatherCall call;
  const T* x;
  const int32_t* rows;
  T* y;
  bool accumulate;

  __device__ void operator()(int64_t i, int64_t column, int count) const {
    const int64_t block = i / call.count;
    const int64_t row = block * call.extent + rows[call.shared ? i % call.count : i];
    StoreResult(LoadEight(x + row * call.width + column, count), y + i * call.width + column, count,
                accumulate);
  }
};

template <typename T>
struct GatherRowsGrad {
  GatherCall call;
  const T* dy;
  const int32_t* rows;
  T* dx;
  bool accumulate;

  __device__ void operator()(int64_t i, int64_t column, int count) const {
    const int64_t block = i / call.extent, row = i % call.extent;
    const int32_t* list = rows + (call.shared ? 0 : block * call.count);
    Eight sum = {};
    for (int64_t k = 0; k < call.count; ++k) {
      if (list[k] != row) continue;
      sum += LoadEight(dy + (block * call.count + k) * call.width + column, count);
    }
    StoreResult(sum, dx + i * call.width + column, count, accumulate);
  }
};

// Binds `Body` to a row of the output a thread. `whole` is the type of x or dx.
template <template <typename> typename Body>
BoundKernel Bind(const OpCall& call, const TensorType& whole) {
  const DType dtype = call.inputs[0].dtype;
  const GatherCall gather =
      GatherCall::Of(whole, call.inputs[1], static_cast<int>(call.attributes.Int("axis")));
  const int64_t rows = call.outputs[0].shape.size() / gather.width;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto element) {
      using T = decltype(element);
      Rowwise(arguments, rows, gather.width,
              Body<T>{gather, Input<T>(arguments, 0), Input<int32_t>(arguments, 1),
                      Output<T>(arguments, 0), accumulate});
    });
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_gather_rows(const OpCall& call) {
  return Bind<GatherRows>(call, call.inputs[0]);
}

std::optional<BoundKernel> cuda_gather_rows_grad(const OpCall& call) {
  return Bind<GatherRowsGrad>(call, call.outputs[0]);
}

}  // namespace syntra
