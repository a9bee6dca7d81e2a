// SPDX-License-Identifier: Apache-2.0
// The gated GELU gelu(x) * g, with gelu's tanh form (kernels/math/activation.inc), and its
// gradients dx = dy g gelu'(x), dg = dy gelu(x), eight elements at a time.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/math/activation.h"
#include "kernels/operands.h"

namespace syntra::gpu {

using Gelu = scalar::GeluTanh;

template <typename T>
struct GatedGelu {
  const T *x, *g;
  T* y;
  bool accumulate;

  // `mask` applies dropout to eight elements, or nothing.
  template <typename Masking>
  __device__ __forceinline__ void At(int64_t i, int count, const Masking& mask) const {
    Eight value = LoadEight(x + i, count);
    const Eight gate = LoadEight(g + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) value[k] = Gelu::Value(value[k]) * gate[k];
    mask(value);
    StoreResult(value, y + i, count, accumulate);
  }
};

template <typename T>
struct GatedGeluGrad {
  const T *x, *g, *dy;
  T *dx, *dg;  // null: not needed
  bool accumulate_x, accumulate_g;

  // `mask` applies dropout to eight elements of dy.
  template <typename Masking>
  __device__ __forceinline__ void At(int64_t i, int count, const Masking& mask) const {
    const Eight value = LoadEight(x + i, count);
    Eight slope = LoadEight(dy + i, count);
    mask(slope);
    Eight result;
    if (dg != nullptr) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) result[k] = Gelu::Value(value[k]) * slope[k];
      StoreResult(result, dg + i, count, accumulate_g);
    }
    if (dx != nullptr) {
      const Eight gate = LoadEight(g + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) result[k] = Gelu::Slope(value[k]) * gate[k] * slope[k];
      StoreResult(result, dx + i, count, accumulate_x);
    }
  }
};

// Functions of an element's type and the arguments of a call, which give the two.
inline auto ForwardOf(const OpCall& call) {
  return [accumulate = Accumulates(call, 0)](auto type, const KernelArguments& arguments) {
    using T = decltype(type);
    return GatedGelu<T>{Input<T>(arguments, 0), Input<T>(arguments, 1), Output<T>(arguments, 0),
                        accumulate};
  };
}

inline auto GradientOf(const OpCall& call) {
  return [accumulate_x = Accumulates(call, 0), accumulate_g = Accumulates(call, 1)](
             auto type, const KernelArguments& arguments) {
    using T = decltype(type);
    return GatedGeluGrad<T>{Input<T>(arguments, 0),
                            Input<T>(arguments, 1),
                            Input<T>(arguments, 2),
                            Output<T>(arguments, 0),
                            Output<T>(arguments, 1),
                            accumulate_x,
                            accumulate_g};
  };
}

}  // namespace syntra::gpu
