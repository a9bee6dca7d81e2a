// SPDX-License-Identifier: Apache-2.0
// relative_bias: bias[h,k] = table[h, bucket(k - (T - 1) - query_start)], and its gradient. There
// are only a few thousand values, so plain loops suffice.
#include "kernels/math/relative_bucket.h"

#include <algorithm>

#include "kernels/operands.h"

namespace syntra {

namespace {

struct RelativeBias {
  int64_t heads, differences, buckets, queries;
  T5Buckets bucket_of;
  bool accumulate;

  RelativeBias(const OpCall& call, const Shape& table, const Shape& bias)
      : heads(table[0]),
        differences(bias[1]),
        buckets(table[1]),
        queries(call.attributes.Int("queries")),
        bucket_of(buckets, call.attributes.Flag("bidirectional"),
                  call.attributes.Int("max_distance")),
        accumulate(Accumulates(call, 0)) {}

  int32_t BucketAt(int64_t k, int64_t start) const { return bucket_of(k - (queries - 1) - start); }
};

}  // namespace

std::optional<BoundKernel> cpu_relative_bias(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [shape = RelativeBias(call, call.inputs[0].shape, call.outputs[0].shape)](
                   const KernelArguments& arguments) {
    const float* table = Input<float>(arguments, 0);
    const auto* start = Input<int32_t>(arguments, 1);
    float* bias = Output<float>(arguments, 0);
    for (int64_t k = 0; k < shape.differences; ++k) {
      const int32_t bucket = shape.BucketAt(k, start != nullptr ? *start : 0);
      for (int64_t h = 0; h < shape.heads; ++h) {
        float& to = bias[h * shape.differences + k];
        to = table[h * shape.buckets + bucket] + (shape.accumulate ? to : 0.0f);
      }
    }
  };
  return kernel;
}

std::optional<BoundKernel> cpu_relative_bias_grad(const OpCall& call) {
  const RelativeBias shape(call, call.outputs[0].shape, call.inputs[0].shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = shape.buckets * sizeof(double);
  kernel.run = [shape](const KernelArguments& arguments) {
    const std::span sums(reinterpret_cast<double*>(arguments.workspace), shape.buckets);
    for (int64_t h = 0; h < shape.heads; ++h) {
      const float* d = Input<float>(arguments, 0) + h * shape.differences;
      float* row = Output<float>(arguments, 0) + h * shape.buckets;
      std::ranges::fill(sums, 0.0);
      for (int64_t k = 0; k < shape.differences; ++k) sums[shape.BucketAt(k, 0)] += d[k];
      for (int64_t b = 0; b < shape.buckets; ++b) {
        row[b] = static_cast<float>(sums[b] + (shape.accumulate ? row[b] : 0.0f));
      }
    }
  };
  return kernel;
}

}  // namespace syntra
