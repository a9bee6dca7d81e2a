// SPDX-License-Identifier: Apache-2.0
// add_tables: the broadcast sum of two score tables [H or 1, T or 1, S]. The gradient of each sums
// over the extents that it was broadcast along, in index order.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// A table. Extents of 1 are broadcast.
struct Table {
  const float* values;
  int64_t heads, queries, keys;

  __device__ const float* Row(int64_t h, int64_t t) const {
    return values + ((heads == 1 ? 0 : h) * queries + (queries == 1 ? 0 : t)) * keys;
  }
};

struct AddTables {
  Table a, b;
  float* y;
  int64_t queries, keys;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t h = row / queries, t = row % queries;
    Eight value = LoadEight(a.Row(h, t) + column, count);
    const Eight term = LoadEight(b.Row(h, t) + column, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] += term[k];
    StoreResult(value, y + row * keys + column, count, accumulate);
  }
};

// Row (h, t) of a table's gradient is the sum of the rows of d that it was broadcast to.
struct SumBroadcast {
  const float* d;
  float* result;
  int64_t heads, queries, keys;                        // of d
  int64_t queries_of_table, heads_each, queries_each;  // each: how many it was broadcast to
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const int64_t first_h = row / queries_of_table, first_t = row % queries_of_table;
    Eight sum = {};
    for (int64_t h = first_h; h < first_h + heads_each; ++h) {
      for (int64_t t = first_t; t < first_t + queries_each; ++t) {
        const Eight term = LoadEight(d + (h * queries + t) * keys + column, count);
#pragma unroll
        for (int k = 0; k < kEight; ++k) sum[k] += term[k];
      }
    }
    StoreResult(sum, result + row * keys + column, count, accumulate);
  }
};

}  // namespace

std::optional<BoundKernel> cuda_add_tables(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.inputs[1]) || !IsF32(call.outputs[0])) {
    return std::nullopt;
  }
  const Shape a = call.inputs[0].shape, b = call.inputs[1].shape, y = call.outputs[0].shape;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto table = [&](int input, const Shape& shape) {
      return Table{Input<float>(arguments, input), shape[0], shape[1], shape[2]};
    };
    Rowwise(
        arguments, y[0] * y[1], y[2],
        AddTables{table(0, a), table(1, b), Output<float>(arguments, 0), y[1], y[2], accumulate});
  };
  return kernel;
}

std::optional<BoundKernel> cuda_add_tables_grad(const OpCall& call) {
  if (!IsF32(call.inputs[0])) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    const Shape& d = call.inputs[0].shape;
    for (int i = 0; i < 2; ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      const Shape& table = call.outputs[i].shape;
      Rowwise(arguments, table[0] * table[1], table[2],
              SumBroadcast{Input<float>(arguments, 0), Output<float>(arguments, i), d[0], d[1],
                           d[2], table[1], d[0] / table[0], d[1] / table[1], Accumulates(call, i)});
    }
  };
  return kernel;
}

}  // namespace syntra
