// SPDX-License-Identifier: Apache-2.0
// The gated GELU gelu(x) * g on vectors (Shazeer 2020), with gelu's tanh form
// (kernels/math/activation.inc).
#if defined(SYNTRA_KERNELS_CPU_GATED_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_GATED_GELU_INL_H_
#undef SYNTRA_KERNELS_CPU_GATED_GELU_INL_H_
#else
#define SYNTRA_KERNELS_CPU_GATED_GELU_INL_H_
#endif

#include "kernels/cpu/exp-inl.h"
#include "kernels/math/activation.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

inline constexpr float kTwiceRoot = static_cast<float>(scalar::GeluTanh::kTwiceRoot);
inline constexpr float kCubic = static_cast<float>(scalar::GeluTanh::kCubic);

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
  const FloatVector minus_2u = hn::Mul(hn::Mul(hn::Set(d, -kTwiceRoot), x), bend);
  // Beyond 80 the sigmoid is below 2e-35.
  const FloatVector power = FastExp(hn::Min(hn::Set(d, 80.0f), minus_2u));
  const FloatVector sigmoid = hn::Div(one, hn::Add(one, power));
  return {sigmoid, hn::Mul(power, sigmoid), square};
}

// y of elements [i, i + lanes). `mask` applies dropout to a vector of them, or nothing.
template <typename T>
struct GatedGeluCall {
  const T *x, *g;
  T* y;
  bool accumulate;

  template <typename Lanes, typename Mask>
  HWY_INLINE void At(int64_t i, Lanes lanes, const Mask& mask) const {
    const FloatVector value = Load(x + i, lanes);
    const FloatVector gelu = hn::Mul(value, GeluAt(value).sigmoid);
    StoreResult(mask(hn::Mul(gelu, Load(g + i, lanes))), y + i, lanes, accumulate);
  }
};

// dx and dg of elements [i, i + lanes). `mask` applies dropout to dy.
template <typename T>
struct GatedGeluGradCall {
  const T *x, *g, *dy;
  T *dx, *dg;  // null: not needed
  bool accumulate_x, accumulate_g;

  template <typename Lanes, typename Mask>
  HWY_INLINE void At(int64_t i, Lanes lanes, const Mask& mask) const {
    const FloatTag d;
    const FloatVector value = Load(x + i, lanes), slope = mask(Load(dy + i, lanes));
    const GeluParts parts = GeluAt(value);
    if (dg != nullptr) {
      const FloatVector gelu = hn::Mul(value, parts.sigmoid);
      StoreResult(hn::Mul(gelu, slope), dg + i, lanes, accumulate_g);
    }
    if (dx != nullptr) {
      // d(2u)/dx
      const FloatVector bend =
          hn::MulAdd(hn::Set(d, 3.0f * kCubic), parts.square, hn::Set(d, 1.0f));
      const FloatVector inner = hn::Mul(hn::Set(d, kTwiceRoot), bend);
      const FloatVector curve = hn::Mul(hn::Mul(value, inner), parts.complement);
      const FloatVector derivative = hn::Mul(parts.sigmoid, hn::Add(hn::Set(d, 1.0f), curve));
      StoreResult(hn::Mul(hn::Mul(derivative, Load(g + i, lanes)), slope), dx + i, lanes,
                  accumulate_x);
    }
  }
};

template <typename T>
GatedGeluCall<T> ForwardOf(const OpCall& call, const KernelArguments& arguments) {
  return {Input<T>(arguments, 0), Input<T>(arguments, 1), Output<T>(arguments, 0),
          Accumulates(call, 0)};
}

template <typename T>
GatedGeluGradCall<T> GradientOf(const OpCall& call, const KernelArguments& arguments) {
  return {Input<T>(arguments, 0),  Input<T>(arguments, 1),  Input<T>(arguments, 2),
          Output<T>(arguments, 0), Output<T>(arguments, 1), Accumulates(call, 0),
          Accumulates(call, 1)};
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
