// SPDX-License-Identifier: Apache-2.0
// layer_norm and its gradient (formulas: kernels/ops/layer_norm.cc), a row at a time. The
// gradients of scale and bias are summed within blocks of rows, then over the blocks in order.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// The mean over a row of term(j, lanes).
template <typename Term>
HWY_INLINE float MeanOf(int64_t width, const Term& term) {
  FloatVector sum = hn::Zero(FloatTag());
  VectorLoop(width,
             [&](int64_t j, auto lanes) { sum = hn::Add(sum, Valid(term(j, lanes), lanes)); });
  return SumLanes(sum) / static_cast<float>(width);
}

void LayerNorm(const OpCall& call, const KernelArguments& arguments) {
  const int64_t width = call.inputs[0].shape[-1], rows = call.inputs[0].shape.rows();
  const auto epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  const float *scale = Input<float>(arguments, 1), *bias = Input<float>(arguments, 2);
  float *means = Output<float>(arguments, 1), *inverses = Output<float>(arguments, 2);
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = Input<T>(arguments, 0);
    T* y = Output<T>(arguments, 0);
    ParallelFor(rows, RowGrain(width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * width;
        const float mean =
            MeanOf(width, [=](int64_t j, auto lanes) { return Load(from + j, lanes); });
        const FloatVector center = hn::Set(FloatTag(), mean);
        const float variance = MeanOf(width, [=](int64_t j, auto lanes) {
          const FloatVector centered = hn::Sub(Load(from + j, lanes), center);
          return hn::Mul(centered, centered);
        });
        const float inverse = 1.0f / std::sqrt(variance + epsilon);
        if (means != nullptr) means[row] = mean;
        if (inverses != nullptr) inverses[row] = inverse;
        if (y == nullptr) continue;
        VectorLoop(width, [=](int64_t j, auto lanes) {
          const FloatVector normal =
              hn::Mul(hn::Sub(Load(from + j, lanes), center), hn::Set(FloatTag(), inverse));
          Store(hn::MulAdd(normal, Load(scale + j, lanes), Load(bias + j, lanes)),
                y + row * width + j, lanes);
        });
      }
    });
  });
}

template <typename T>
struct LayerNormGradRows {
  int64_t width;
  const T* x;
  const float *scale, *means, *inverses;
  const T* dy;
  T* dx;
  bool accumulate;

  template <typename Lanes>
  HWY_INLINE FloatVector Normal(int64_t row, int64_t j, Lanes lanes) const {
    return hn::Mul(hn::Sub(Load(x + row * width + j, lanes), hn::Set(FloatTag(), means[row])),
                   hn::Set(FloatTag(), inverses[row]));
  }
  template <typename Lanes>
  HWY_INLINE FloatVector Slope(int64_t row, int64_t j, Lanes lanes) const {
    return hn::Mul(Load(dy + row * width + j, lanes), Load(scale + j, lanes));
  }

  HWY_INLINE void Row(int64_t row) const {
    const auto set = [](float value) { return hn::Set(FloatTag(), value); };
    const float mean = MeanOf(width, [&](int64_t j, auto lanes) { return Slope(row, j, lanes); });
    const float dot = MeanOf(width, [&](int64_t j, auto lanes) {
      return hn::Mul(Slope(row, j, lanes), Normal(row, j, lanes));
    });
    VectorLoop(width, [&](int64_t j, auto lanes) {
      const FloatVector along = hn::MulAdd(Normal(row, j, lanes), set(dot), set(mean));
      const FloatVector value = hn::Mul(set(inverses[row]), hn::Sub(Slope(row, j, lanes), along));
      StoreResult(value, dx + row * width + j, lanes, accumulate);
    });
  }

  // Adds a row's terms to dscale and dbias.
  HWY_INLINE void AddRow(int64_t row, float* dscale, float* dbias) const {
    VectorLoop(width, [&](int64_t j, auto lanes) {
      const FloatVector slope = Load(dy + row * width + j, lanes);
      AddTo(hn::Mul(slope, Normal(row, j, lanes)), dscale + j, lanes);
      AddTo(slope, dbias + j, lanes);
    });
  }
};

void LayerNormGrad(const OpCall& call, const KernelArguments& arguments) {
  const int64_t width = call.inputs[0].shape[-1];
  const RowBlocks blocks = RowBlocks::Of(call.inputs[0].shape.rows());
  float *dscale = Output<float>(arguments, 1), *dbias = Output<float>(arguments, 2);
  auto* scales = reinterpret_cast<float*>(arguments.workspace);
  float* biases = scales + blocks.count * width;
  WithActivation(call.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const LayerNormGradRows<T> rows{width,
                                    Input<T>(arguments, 0),
                                    Input<float>(arguments, 1),
                                    Input<float>(arguments, 2),
                                    Input<float>(arguments, 3),
                                    Input<T>(arguments, 4),
                                    Output<T>(arguments, 0),
                                    Accumulates(call, 0)};
    const bool sums = dscale != nullptr || dbias != nullptr;
    ParallelFor(blocks.count, 1, [=, &rows](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        float *scale_sums = scales + block * width, *bias_sums = biases + block * width;
        std::fill_n(scale_sums, width, 0.0f);
        std::fill_n(bias_sums, width, 0.0f);
        for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
          if (rows.dx != nullptr) rows.Row(row);
          if (sums) rows.AddRow(row, scale_sums, bias_sums);
        }
      }
    });
  });
  if (dscale) SumBlocks(scales, blocks.count, width, dscale, Accumulates(call, 1));
  if (dbias) SumBlocks(biases, blocks.count, width, dbias, Accumulates(call, 2));
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(LayerNorm);
HWY_EXPORT(LayerNormGrad);

std::optional<BoundKernel> cpu_layer_norm(const OpCall& call) {
  BoundKernel kernel;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(LayerNorm)(call, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_layer_norm_grad(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = 2 * RowBlocks::Of(x.shape.rows()).count * x.shape[-1] * sizeof(float);
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(LayerNormGrad)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
