// SPDX-License-Identifier: Apache-2.0
// relative_bias: bias[h,k] = table[h, bucket(k - (T - 1) - query_start)], and its gradient, which
// adds up the entries of each bucket in order.
#include "kernels/cuda/rows.h"
#include "kernels/math/relative_bucket.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// T5's buckets as a kernel argument: the smallest distance of each bucket of a direction.
struct Buckets {
  static constexpr int64_t kMost = 128;

  int32_t first[kMost];
  int32_t count;  // of a direction
  bool bidirectional;

  Buckets(const T5Buckets& bucket_of, int64_t buckets, bool both, int64_t max_distance)
      : first{}, count(0), bidirectional(both) {
    for (int64_t distance = 0; distance <= max_distance; ++distance) {
      const int32_t bucket = bucket_of(-distance);
      while (count <= bucket) first[count++] = static_cast<int32_t>(distance);
    }
    // Buckets that no distance falls into.
    for (; count < (both ? buckets / 2 : buckets); ++count) first[count] = INT32_MAX;
  }

  // The bucket of offset = key position - query position.
  __device__ int Of(int64_t offset) const {
    const int64_t distance = offset <= 0 ? -offset : bidirectional ? offset : 0;
    int bucket = 0;
    while (bucket + 1 < count && first[bucket + 1] <= distance) ++bucket;
    return bidirectional && offset > 0 ? bucket + count : bucket;
  }
};

Buckets BucketsOf(const OpCall& call, int64_t buckets) {
  const bool both = call.attributes.Flag("bidirectional");
  const int64_t max_distance = call.attributes.Int("max_distance");
  return {T5Buckets(buckets, both, max_distance), buckets, both, max_distance};
}

struct RelativeBias {
  const float* table;
  const int32_t* start;  // null: 0
  float* bias;
  int64_t differences, buckets, queries;
  Buckets bucket_of;
  bool accumulate;

  __device__ void operator()(int64_t head, int64_t column, int count) const {
    const int64_t zero = queries - 1 + (start != nullptr ? *start : 0);
    for (int64_t k = column; k < column + count; ++k) {
      StoreResult(table[head * buckets + bucket_of.Of(k - zero)], bias + head * differences + k,
                  accumulate);
    }
  }
};

// One block per head. Each of its eight warps computes every eighth bucket.
__global__ void RelativeBiasGradKernel(const float* d, float* dtable, int64_t differences,
                                       int64_t buckets, int64_t queries, Buckets bucket_of,
                                       bool accumulate) {
  const int64_t head = BlockIndex();
  for (int64_t bucket = WarpIndex(); bucket < buckets; bucket += WarpCount()) {
    double sum = 0.0;
    for (int64_t k = LaneIndex(); k < differences; k += kWarp) {
      if (bucket_of.Of(k - (queries - 1)) == bucket) sum += d[head * differences + k];
    }
    sum = WarpSum(sum);
    if (LaneIndex() == 0) {
      StoreResult(static_cast<float>(sum), dtable + head * buckets + bucket, accumulate);
    }
  }
}

}  // namespace

std::optional<BoundKernel> cuda_relative_bias(const OpCall& call) {
  const Shape table = call.inputs[0].shape, bias = call.outputs[0].shape;
  if (table[1] > Buckets::kMost) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [table, bias, queries = call.attributes.Int("queries"),
                buckets = BucketsOf(call, table[1]),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    Rowwise(
        arguments, bias[0], bias[1],
        RelativeBias{Input<float>(arguments, 0), Input<int32_t>(arguments, 1),
                     Output<float>(arguments, 0), bias[1], table[1], queries, buckets, accumulate});
  };
  return kernel;
}

std::optional<BoundKernel> cuda_relative_bias_grad(const OpCall& call) {
  const Shape d = call.inputs[0].shape, table = call.outputs[0].shape;
  if (table[1] > Buckets::kMost) return std::nullopt;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [table, d, queries = call.attributes.Int("queries"),
                buckets = BucketsOf(call, table[1]),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    Launch(arguments, {table[0], kThreads}, RelativeBiasGradKernel, Input<float>(arguments, 0),
           Output<float>(arguments, 0), d[1], table[1], queries, buckets, accumulate);
  };
  return kernel;
}

}  // namespace syntra
