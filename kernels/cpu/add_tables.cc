// SPDX-License-Identifier: Apache-2.0
// add_tables: the broadcast sum of two score tables [H or 1, T or 1, S]. The gradient of each sums
// over the extents that it was broadcast along, in index order.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/add_tables.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// Row (h, t) of a table. Extents of 1 are broadcast.
inline const float* TableRow(const float* table, const Shape& shape, int64_t h, int64_t t) {
  return table + ((shape[0] == 1 ? 0 : h) * shape[1] + (shape[1] == 1 ? 0 : t)) * shape[2];
}

void AddTables(const OpCall& call, const KernelArguments& arguments) {
  const Shape &a = call.inputs[0].shape, &b = call.inputs[1].shape, &y = call.outputs[0].shape;
  const bool accumulate = Accumulates(call, 0);
  ParallelFor(y[0] * y[1], RowGrain(y[2]), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t h = row / y[1], t = row % y[1];
      const float* first = TableRow(Input<float>(arguments, 0), a, h, t);
      const float* second = TableRow(Input<float>(arguments, 1), b, h, t);
      float* to = Output<float>(arguments, 0) + row * y[2];
      VectorLoop(y[2], [=](int64_t j, auto lanes) {
        StoreResult(hn::Add(Load(first + j, lanes), Load(second + j, lanes)), to + j, lanes,
                    accumulate);
      });
    }
  });
}

// Sums `d` [H, T, S] along the axes whose extent in `shape` is 1.
void SumBroadcast(const float* d, const Shape& from, const Shape& shape, bool accumulate,
                  float* result) {
  const int64_t heads = from[0] / shape[0], queries = from[1] / shape[1], keys = from[2];
  // Rows are split into pieces of 256 columns, so that several threads can share a row.
  const int64_t piece = 256, pieces = (keys + piece - 1) / piece;
  const int64_t grain = std::max<int64_t>(1, kGrain / (heads * queries * piece));
  ParallelFor(shape[0] * shape[1] * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / pieces, first = item % pieces * piece;
      const int64_t count = std::min(piece, keys - first);
      float* to = result + row * keys + first;
      if (!accumulate) std::fill_n(to, count, 0.0f);
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < queries; ++t) {
          const int64_t from_row = (row / shape[1] + h) * from[1] + (row % shape[1]) + t;
          const float* source = d + from_row * keys + first;
          VectorLoop(count,
                     [=](int64_t j, auto lanes) { AddTo(Load(source + j, lanes), to + j, lanes); });
        }
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AddTables);
HWY_EXPORT(SumBroadcast);

std::optional<BoundKernel> cpu_add_tables(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1]) || !IsF32(call.outputs[0])) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(AddTables)(call, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_add_tables_grad(const OpCall& call) {
  if (!IsF32(call.inputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    for (int i = 0; i < 2; ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      HWY_DYNAMIC_DISPATCH(SumBroadcast)
      (Input<float>(arguments, 0), call.inputs[0].shape, call.outputs[i].shape,
       Accumulates(call, i), Output<float>(arguments, i));
    }
  };
  return kernel;
}

}  // namespace syntra
#endif
