// relative_bias: bias[h,i,j] = table[h, bucket(j - (i + query_start))]. The bias of a head is
// constant along diagonals: one line of T + S - 1 values, of which row i is a window.
#include "core/buffer.h"
#include "kernels/math/relative_bucket.h"

#include <memory>

#include "core/buffer.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/relative_bias.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// line[h, k] for the diagonal j - i = k - (T - 1).
void SpreadDiagonals(const float* lines, int64_t heads, int64_t queries, int64_t keys,
                     bool accumulate, float* bias) {
  ParallelFor(heads * queries, RowGrain(keys), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t h = row / queries, i = row % queries;
      const float* window = lines + h * (queries + keys - 1) + queries - 1 - i;
      float* to = bias + row * keys;
      VectorLoop(keys, [=](int64_t j, auto lanes) {
        StoreResult(Load(window + j, lanes), to + j, lanes, accumulate);
      });
    }
  });
}

// lines[h, k] = sum of the gradient along its diagonal.
void SumDiagonals(const float* d, int64_t heads, int64_t queries, int64_t keys, float* lines) {
  const int64_t length = queries + keys - 1;
  ParallelFor(heads, 1, [=](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      float* line = lines + h * length;
      std::fill_n(line, length, 0.0f);
      for (int64_t i = 0; i < queries; ++i) {
        const float* from = d + (h * queries + i) * keys;
        float* window = line + queries - 1 - i;
        VectorLoop(keys,
                   [=](int64_t j, auto lanes) { AddTo(Load(from + j, lanes), window + j, lanes); });
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(SpreadDiagonals);
HWY_EXPORT(SumDiagonals);

namespace {

struct RelativeBias {
  int64_t heads, queries, keys, buckets;
  T5Buckets bucket_of;
  bool accumulate;

  int64_t line_length() const { return queries + keys - 1; }
  size_t line_bytes() const { return heads * line_length() * sizeof(float); }

  // The bucket of entry k of a line.
  int32_t BucketAt(int64_t k, const int32_t* query_start) const {
    const int64_t start = query_start != nullptr ? *query_start : 0;
    return bucket_of(k - (queries - 1) - start);
  }
};

std::shared_ptr<const RelativeBias> Describe(const OpCall& call, const Shape& table,
                                             const Shape& bias) {
  return std::make_shared<const RelativeBias>(
      RelativeBias{table[0], bias[1], bias[2], table[1],
                   T5Buckets(table[1], call.attributes.Flag("bidirectional"),
                             call.attributes.Int("max_distance")),
                   Accumulates(call, 0)});
}

}  // namespace

std::optional<BoundKernel> cpu_relative_bias(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.outputs[0])) return std::nullopt;
  const auto shape = Describe(call, call.inputs[0].shape, call.outputs[0].shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = shape->line_bytes();
  kernel.run = [shape](const KernelArguments& arguments) {
    const float* table = Input<float>(arguments, 0);
    auto* lines = reinterpret_cast<float*>(arguments.workspace);
    for (int64_t k = 0; k < shape->line_length(); ++k) {
      const int32_t bucket = shape->BucketAt(k, Input<int32_t>(arguments, 1));
      for (int64_t h = 0; h < shape->heads; ++h) {
        lines[h * shape->line_length() + k] = table[h * shape->buckets + bucket];
      }
    }
    HWY_DYNAMIC_DISPATCH(SpreadDiagonals)
    (lines, shape->heads, shape->queries, shape->keys, shape->accumulate,
     Output<float>(arguments, 0));
  };
  return kernel;
}

std::optional<BoundKernel> cpu_relative_bias_grad(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.outputs[0])) return std::nullopt;
  const auto shape = Describe(call, call.outputs[0].shape, call.inputs[0].shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  const size_t sums_offset = AlignUp(shape->line_bytes());
  kernel.workspace_bytes = sums_offset + shape->buckets * sizeof(double);
  kernel.run = [shape, sums_offset](const KernelArguments& arguments) {
    auto* lines = reinterpret_cast<float*>(arguments.workspace);
    auto* sums = reinterpret_cast<double*>(arguments.workspace + sums_offset);
    float* dtable = Output<float>(arguments, 0);
    HWY_DYNAMIC_DISPATCH(SumDiagonals)
    (Input<float>(arguments, 0), shape->heads, shape->queries, shape->keys, lines);
    for (int64_t h = 0; h < shape->heads; ++h) {
      float* row = dtable + h * shape->buckets;
      for (int64_t b = 0; b < shape->buckets; ++b) sums[b] = shape->accumulate ? row[b] : 0.0;
      for (int64_t k = 0; k < shape->line_length(); ++k) {
        sums[shape->BucketAt(k, nullptr)] += lines[h * shape->line_length() + k];
      }
      for (int64_t b = 0; b < shape->buckets; ++b) row[b] = static_cast<float>(sums[b]);
    }
  };
  return kernel;
}

}  // namespace syntra
#endif
