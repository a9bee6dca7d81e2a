// SPDX-License-Identifier: Apache-2.0
// add_norm: sum = x + dropout(y); normed = sum * rsqrt(mean(sum^2) + epsilon) * scale, T5's RMSNorm
// (Zhang and Sennrich 2019). With n = s r w, g = d_normed w and r the inverse root mean square:
//   dx = d_sum + r (g - s r^2 mean(g s)), dscale = sum over rows of d_normed s r.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/add_norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/add_norm.h"
#include "kernels/cpu/noise-inl.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// Calls body(first, count, words) for the blocks of a row's columns; words is null without dropout.
template <typename Body>
HWY_INLINE void ForEachBlock(const AddNormCall& call, RowNoise& noise, int64_t row,
                             const Body& body) {
  if (!call.mask.masks()) {
    body(int64_t{0}, call.width, static_cast<const uint32_t*>(nullptr));
    return;
  }
  for (int64_t j = 0; j < call.width; j += NoiseWords::kBlock) {
    const int64_t count = std::min(NoiseWords::kBlock, call.width - j);
    body(j, count, noise.Words(row, j, count));
  }
}

template <typename T>
struct AddNormRows {
  const AddNormCall& call;
  const T *x, *y;
  const float* scale;
  T *sum, *normed;
  float* inverse_rms;

  template <typename Lanes>
  HWY_INLINE FloatVector SumAt(int64_t i, const uint32_t* words, Lanes lanes) const {
    FloatVector value = Load(y + i, lanes);
    if (words != nullptr) value = KeepScaled(value, words, call.mask.keep);
    if (x != nullptr) value = hn::Add(value, Load(x + i, lanes));
    return value;
  }

  HWY_INLINE float AddRow(int64_t row, RowNoise& noise) const {
    FloatVector squares = hn::Zero(FloatTag());
    ForEachBlock(call, noise, row, [&](int64_t first, int64_t count, const uint32_t* words) {
      const int64_t start = row * call.width + first;
      VectorLoop(count, [&](int64_t j, auto lanes) {
        const FloatVector value = SumAt(start + j, words != nullptr ? words + j : nullptr, lanes);
        if (sum != nullptr) Store(value, sum + start + j, lanes);
        squares = hn::MulAdd(value, value, squares);
      });
    });
    return 1.0f / std::sqrt(SumLanes(squares) / static_cast<float>(call.width) + call.epsilon);
  }

  // `inverse` is of the sum before it is rounded for storage.
  HWY_INLINE void NormRow(int64_t row, float inverse, RowNoise& noise) const {
    const FloatVector factor = hn::Set(FloatTag(), inverse);
    const auto store = [&](FloatVector value, int64_t column, auto lanes) {
      const FloatVector weight = Load(scale + column, lanes);
      Store(hn::Mul(hn::Mul(value, factor), weight), normed + row * call.width + column, lanes);
    };
    if (sum != nullptr) {
      const T* from = sum + row * call.width;
      VectorLoop(call.width,
                 [&](int64_t j, auto lanes) { store(Load(from + j, lanes), j, lanes); });
      return;
    }
    ForEachBlock(call, noise, row, [&](int64_t first, int64_t count, const uint32_t* words) {
      VectorLoop(count, [&](int64_t j, auto lanes) {
        const int64_t i = row * call.width + first + j;
        const FloatVector value = SumAt(i, words != nullptr ? words + j : nullptr, lanes);
        store(RoundAs(T{}, value), first + j, lanes);
      });
    });
  }
};

void AddNorm(const AddNormCall& call, const KernelArguments& arguments) {
  const auto* keys = Input<int32_t>(arguments, add_norm::kKeys);
  auto* shared = reinterpret_cast<uint32_t*>(arguments.workspace);
  if (call.mask.masks()) FillSharedNoise(call.mask, keys, shared);
  WithActivation(call.dtype, [&](auto type) {
    using T = decltype(type);
    const AddNormRows<T> rows{.call = call,
                              .x = Input<T>(arguments, add_norm::kX),
                              .y = Input<T>(arguments, add_norm::kY),
                              .scale = Input<float>(arguments, add_norm::kScale),
                              .sum = Output<T>(arguments, add_norm::kSum),
                              .normed = Output<T>(arguments, add_norm::kNormed),
                              .inverse_rms = Output<float>(arguments, add_norm::kInverseRms)};
    ParallelFor(call.rows, RowGrain(call.width), [&](int64_t begin, int64_t end) {
      RowNoise noise(call.mask, keys, shared);
      for (int64_t row = begin; row < end; ++row) {
        const float inverse = rows.AddRow(row, noise);
        if (rows.inverse_rms != nullptr) rows.inverse_rms[row] = inverse;
        if (rows.normed != nullptr) rows.NormRow(row, inverse, noise);
      }
    });
  });
}

template <typename T>
struct AddNormGradRows {
  const AddNormCall& call;
  const T* sum;
  const float *scale, *inverse_rms;
  const T *d_sum, *d_normed;
  T *dx, *dy;

  // mean(g s) r^3: the part of the gradient that flows through the row's norm.
  HWY_INLINE float Shrink(int64_t row) const {
    FloatVector dot = hn::Zero(FloatTag());
    const int64_t start = row * call.width;
    VectorLoop(call.width, [&](int64_t j, auto lanes) {
      const FloatVector g = hn::Mul(Load(d_normed + start + j, lanes), Load(scale + j, lanes));
      dot = hn::MulAdd(g, Load(sum + start + j, lanes), dot);
    });
    const float r = inverse_rms[row];
    return SumLanes(dot) / static_cast<float>(call.width) * r * r * r;
  }

  HWY_INLINE void Row(int64_t row, RowNoise& noise, float* dscale) const {
    const FloatTag d;
    const FloatVector r = hn::Set(d, inverse_rms[row]);
    const FloatVector shrink = hn::Set(d, d_normed != nullptr ? Shrink(row) : 0.0f);
    ForEachBlock(call, noise, row, [&](int64_t first, int64_t count, const uint32_t* words) {
      VectorLoop(count, [&](int64_t k, auto lanes) {
        const int64_t j = first + k, i = row * call.width + j;
        FloatVector gradient = hn::Zero(d);
        if (d_normed != nullptr) {
          const FloatVector s = Load(sum + i, lanes);
          const FloatVector scaled = hn::Mul(Load(d_normed + i, lanes), r);
          if (dscale != nullptr) AddTo(hn::Mul(scaled, s), dscale + j, lanes);
          gradient = hn::NegMulAdd(s, shrink, hn::Mul(scaled, Load(scale + j, lanes)));
        }
        if (d_sum != nullptr) gradient = hn::Add(gradient, Load(d_sum + i, lanes));
        if (dx != nullptr) {
          StoreResult(gradient, dx + i, lanes, call.accumulate[add_norm_grad::kDX]);
        }
        if (dy != nullptr) {
          if (words != nullptr) gradient = KeepScaled(gradient, words + k, call.mask.keep);
          StoreResult(gradient, dy + i, lanes, call.accumulate[add_norm_grad::kDY]);
        }
      });
    });
  }
};

void AddNormGrad(const AddNormCall& call, const KernelArguments& arguments) {
  const auto* keys = Input<int32_t>(arguments, add_norm_grad::kKeys);
  float* dscale = Output<float>(arguments, add_norm_grad::kDScale);
  auto* partial = reinterpret_cast<float*>(arguments.workspace);
  auto* shared = reinterpret_cast<uint32_t*>(arguments.workspace + call.noise_offset);
  const RowBlocks blocks = RowBlocks::Of(call.rows);
  if (call.mask.masks()) FillSharedNoise(call.mask, keys, shared);
  WithActivation(call.dtype, [&](auto type) {
    using T = decltype(type);
    const AddNormGradRows<T> rows{
        .call = call,
        .sum = Input<T>(arguments, add_norm_grad::kSum),
        .scale = Input<float>(arguments, add_norm_grad::kScale),
        .inverse_rms = Input<float>(arguments, add_norm_grad::kInverseRms),
        .d_sum = Input<T>(arguments, add_norm_grad::kDSum),
        .d_normed = Input<T>(arguments, add_norm_grad::kDNormed),
        .dx = Output<T>(arguments, add_norm_grad::kDX),
        .dy = Output<T>(arguments, add_norm_grad::kDY)};
    ParallelFor(blocks.count, 1, [&](int64_t begin, int64_t end) {
      RowNoise noise(call.mask, keys, shared);
      for (int64_t block = begin; block < end; ++block) {
        float* sums = dscale != nullptr ? partial + block * call.width : nullptr;
        if (sums != nullptr) std::fill_n(sums, call.width, 0.0f);
        for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
          rows.Row(row, noise, sums);
        }
      }
    });
  });
  if (dscale != nullptr) {
    SumBlocks(partial, blocks.count, call.width, dscale, call.accumulate[add_norm_grad::kDScale]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AddNorm);
HWY_EXPORT(AddNormGrad);

namespace {

AddNormCall Describe(const OpCall& call, const TensorType& sum) {
  AddNormCall result{.dtype = sum.dtype,
                     .rows = sum.shape.rows(),
                     .width = sum.shape[-1],
                     .mask = TensorMask::Of(call.attributes, sum.shape)};
  for (size_t i = 0; i < result.accumulate.size(); ++i) result.accumulate[i] = Accumulates(call, i);
  return result;
}

}  // namespace

std::optional<BoundKernel> cpu_add_norm(const OpCall& call) {
  const TensorType& y = call.inputs[add_norm::kY];
  AddNormCall described = Describe(call, y);
  described.epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  BoundKernel kernel;
  if (described.mask.masks()) kernel.workspace_bytes = SharedNoiseBytes(described.mask);
  kernel.run = [described](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(AddNorm)(described, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_add_norm_grad(const OpCall& call) {
  const TensorType& sum = call.inputs[add_norm_grad::kSum];
  AddNormCall described = Describe(call, sum);
  described.noise_offset =
      AlignUp(RowBlocks::Of(described.rows).count * described.width * sizeof(float));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = described.noise_offset;
  if (described.mask.masks()) kernel.workspace_bytes += SharedNoiseBytes(described.mask);
  kernel.run = [described](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(AddNormGrad)(described, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
