// SPDX-License-Identifier: Apache-2.0
// gated_gelu: gelu(x) * g with gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), computed
// as x * sigmoid(2u), u the argument of tanh (Hendrycks and Gimpel 2016; Shazeer 2020 for the
// gate).
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gated_gelu.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

inline constexpr float kTwiceRootTwoOverPi = 1.5957691216057308f;
inline constexpr float kCubic = 0.044715f;

struct GeluParts {
  FloatVector sigmoid;     // of 2u; gelu = x * sigmoid
  FloatVector complement;  // 1 - sigmoid, without cancellation
  FloatVector square;      // x^2
};

HWY_INLINE GeluParts GeluAt(FloatVector x) {
  const FloatTag d;
  const FloatVector one = hn::Set(d, 1.0f);
  const FloatVector square = hn::Mul(x, x);
  const FloatVector bend = hn::MulAdd(hn::Set(d, kCubic), square, one);
  const FloatVector minus_2u = hn::Mul(hn::Mul(hn::Set(d, -kTwiceRootTwoOverPi), x), bend);
  // Beyond 80 the sigmoid is so small that its product with any finite float is zero.
  const FloatVector power = FastExp(hn::Min(hn::Set(d, 80.0f), minus_2u));
  const FloatVector sigmoid = hn::Div(one, hn::Add(one, power));
  return {sigmoid, hn::Mul(power, sigmoid), square};
}

template <typename T>
void GatedGeluLoop(const T* x, const T* g, T* y, int64_t count, bool accumulate) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const FloatVector value = Load(x + i, lanes);
    const FloatVector gelu = hn::Mul(value, GeluAt(value).sigmoid);
    StoreResult(hn::Mul(gelu, Load(g + i, lanes)), y + i, lanes, accumulate);
  });
}

struct GatedGeluGradOutputs {
  bool accumulate_x, accumulate_g;
};

template <typename T>
void GatedGeluGradLoop(const T* x, const T* g, const T* dy, T* dx, T* dg, int64_t count,
                       GatedGeluGradOutputs outputs) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const FloatTag d;
    const FloatVector value = Load(x + i, lanes), slope = Load(dy + i, lanes);
    const GeluParts parts = GeluAt(value);
    if (dg != nullptr) {
      const FloatVector gelu = hn::Mul(value, parts.sigmoid);
      StoreResult(hn::Mul(gelu, slope), dg + i, lanes, outputs.accumulate_g);
    }
    if (dx != nullptr) {
      // d(2u)/dx
      const FloatVector bend =
          hn::MulAdd(hn::Set(d, 3.0f * kCubic), parts.square, hn::Set(d, 1.0f));
      const FloatVector inner = hn::Mul(hn::Set(d, kTwiceRootTwoOverPi), bend);
      const FloatVector curve = hn::Mul(hn::Mul(value, inner), parts.complement);
      const FloatVector derivative = hn::Mul(parts.sigmoid, hn::Add(hn::Set(d, 1.0f), curve));
      StoreResult(hn::Mul(hn::Mul(derivative, Load(g + i, lanes)), slope), dx + i, lanes,
                  outputs.accumulate_x);
    }
  });
}

void GatedGelu(DType dtype, int64_t count, bool accumulate, const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    GatedGeluLoop(Input<T>(arguments, 0), Input<T>(arguments, 1), Output<T>(arguments, 0), count,
                  accumulate);
  });
}

void GatedGeluGrad(DType dtype, int64_t count, bool accumulate_x, bool accumulate_g,
                   const KernelArguments& arguments) {
  WithActivation(dtype, [&](auto type) {
    using T = decltype(type);
    GatedGeluGradLoop(Input<T>(arguments, 0), Input<T>(arguments, 1), Input<T>(arguments, 2),
                      Output<T>(arguments, 0), Output<T>(arguments, 1), count,
                      {accumulate_x, accumulate_g});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(GatedGelu);
HWY_EXPORT(GatedGeluGrad);

std::optional<BoundKernel> cpu_gated_gelu(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || call.inputs[1].dtype != x.dtype || !call.outputs[0].present()) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(GatedGelu)(x.dtype, x.shape.size(), accumulate, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_gated_gelu_grad(const OpCall& call) {
  const TensorType x = call.inputs[0];
  if (!IsActivation(x) || call.inputs[1].dtype != x.dtype || call.inputs[2].dtype != x.dtype) {
    return std::nullopt;
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [x, accumulate_x = Accumulates(call, 0),
                accumulate_g = Accumulates(call, 1)](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(GatedGeluGrad)
    (x.dtype, x.shape.size(), accumulate_x, accumulate_g, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
