// SPDX-License-Identifier: Apache-2.0
// gather_rows: copies of rows. gather_rows_grad: the numbers are sorted first, by a stable counting
// sort, so that each row of the result is summed at once, in f32 and in order.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gather_rows.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/gather_call.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void GatherRows(const GatherCall& call, DType dtype, bool accumulate,
                const KernelArguments& arguments) {
  const auto* rows = Input<int32_t>(arguments, 1);
  WithActivation(dtype, [&](auto element) {
    using T = decltype(element);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelFor(call.blocks * call.count, RowGrain(call.width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / call.count;
        const int64_t row = block * call.extent + rows[call.shared ? i % call.count : i];
        const T* from = x + row * call.width;
        T* to = y + i * call.width;
        VectorLoop(call.width, [=](int64_t j, auto lanes) {
          StoreResult(Load(from + j, lanes), to + j, lanes, accumulate);
        });
      }
    });
  });
}

// The places of row r of a list are its `order` from `first[r]` to `first[r + 1]` (Sort, below).
void GatherRowsGrad(const GatherCall& call, DType dtype, bool accumulate, const int32_t* firsts,
                    const int32_t* orders, const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto element) {
    using T = decltype(element);
    const T* dy = Input<T>(arguments, 0);
    T* dx = Output<T>(arguments, 0);
    ParallelFor(call.blocks * call.extent, RowGrain(call.width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / call.extent, row = i % call.extent;
        const int64_t list = call.shared ? 0 : block;
        const int32_t* first = firsts + list * (call.extent + 1) + row;
        const int32_t* order = orders + list * call.count;
        const T* from = dy + block * call.count * call.width;
        T* to = dx + i * call.width;
        VectorLoop(call.width, [=](int64_t j, auto lanes) {
          auto sum = hn::Zero(FloatTag());
          for (int32_t place = first[0]; place < first[1]; ++place) {
            sum = hn::Add(sum, Load(from + order[place] * call.width + j, lanes));
          }
          StoreResult(sum, to + j, lanes, accumulate);
        });
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/workspace.h"

namespace syntra {

HWY_EXPORT(GatherRows);
HWY_EXPORT(GatherRowsGrad);

namespace {

void CheckRows(const GatherCall& call, const int32_t* rows) {
  for (int64_t i = 0; i < call.lists() * call.count; ++i) {
    SYNTRA_CHECK(rows[i] >= 0 && rows[i] < call.extent, "row {} of {}", rows[i], call.extent);
  }
}

// Sorts the places of one list by their rows; `first` [extent + 1], `order` [count].
void Sort(const GatherCall& call, const int32_t* rows, int32_t* first, int32_t* order) {
  std::fill_n(first, call.extent + 1, 0);
  for (int64_t k = 0; k < call.count; ++k) ++first[rows[k] + 1];
  for (int64_t r = 0; r < call.extent; ++r) first[r + 1] += first[r];
  // Each first[r] moves to the end of its row, which is where the next one begins.
  for (int64_t k = 0; k < call.count; ++k) order[first[rows[k]]++] = static_cast<int32_t>(k);
  std::copy_backward(first, first + call.extent, first + call.extent + 1);
  first[0] = 0;
}

}  // namespace

std::optional<BoundKernel> cpu_gather_rows(const OpCall& call) {
  const GatherCall gather =
      GatherCall::Of(call.inputs[0], call.inputs[1], static_cast<int>(call.attributes.Int("axis")));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [gather, dtype = call.inputs[0].dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    CheckRows(gather, Input<int32_t>(arguments, 1));
    HWY_DYNAMIC_DISPATCH(GatherRows)(gather, dtype, accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_gather_rows_grad(const OpCall& call) {
  const GatherCall gather = GatherCall::Of(call.outputs[0], call.inputs[1],
                                           static_cast<int>(call.attributes.Int("axis")));
  WorkspaceLayout layout;
  const size_t starts = layout.Place(gather.lists() * (gather.extent + 1) * sizeof(int32_t));
  const size_t places = layout.Place(gather.lists() * gather.count * sizeof(int32_t));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=, dtype = call.inputs[0].dtype,
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto* rows = Input<int32_t>(arguments, 1);
    auto* first = reinterpret_cast<int32_t*>(arguments.workspace + starts);
    auto* order = reinterpret_cast<int32_t*>(arguments.workspace + places);
    CheckRows(gather, rows);
    ParallelFor(gather.lists(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t list = begin; list < end; ++list) {
        Sort(gather, rows + list * gather.count, first + list * (gather.extent + 1),
             order + list * gather.count);
      }
    });
    HWY_DYNAMIC_DISPATCH(GatherRowsGrad)(gather, dtype, accumulate, first, order, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
