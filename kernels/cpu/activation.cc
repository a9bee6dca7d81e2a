// SPDX-License-Identifier: Apache-2.0
// activation and its gradient: the formulas of kernels/math/activation.inc on vectors.

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include "hwy/foreach_target.h"
// After it: they are made once for each target.
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// A vector that formulas can use as a number.
struct Lanes {
  FloatVector vector;

  HWY_INLINE explicit Lanes(double x) : vector(hn::Set(FloatTag(), static_cast<float>(x))) {}
  HWY_INLINE explicit Lanes(FloatVector v) : vector(v) {}
};

HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hn::Add(a.vector, b.vector)); }
HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hn::Sub(a.vector, b.vector)); }
HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hn::Mul(a.vector, b.vector)); }
HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hn::Div(a.vector, b.vector)); }
HWY_INLINE auto operator>(Lanes a, Lanes b) { return hn::Gt(a.vector, b.vector); }
template <typename Condition>
HWY_INLINE Lanes Where(Condition condition, Lanes yes, Lanes no) {
  return Lanes(hn::IfThenElse(condition, yes.vector, no.vector));
}
HWY_INLINE Lanes Max(Lanes x, Lanes y) { return Where(y > x, y, x); }

HWY_INLINE Lanes Exp(Lanes x) {
  constexpr double kLargest = 88.7228317, kInfinity = HUGE_VAL;  // the last of a finite result
  const Lanes within = Where(x > Lanes(kLargest), Lanes(kLargest), x);
  return Where(x > Lanes(kLargest), Lanes(kInfinity), Lanes(FastExp(within.vector)));
}
// Highway's is finite whatever x is.
HWY_INLINE Lanes Log(Lanes x) {
  const FloatTag d;
  const Lanes zero(0.0), infinity(HUGE_VAL);
  const Lanes of_positive = Where(infinity > x, Lanes(hn::Log(d, x.vector)), infinity);
  const Lanes otherwise = Where(hn::Eq(x.vector, zero.vector), Lanes(-HUGE_VAL), Lanes(NAN));
  return Where(x > zero, of_positive, otherwise);
}
HWY_INLINE Lanes Tanh(Lanes x) { return Lanes(hn::Tanh(FloatTag(), x.vector)); }

// Highway's sine and cosine are for |x| up to 39000; those of the largest numbers are infinite.
// Gives `near`, with exact(x) in the lanes beyond, which are rare. Only there: no result may depend
// on the other numbers of its vector.
template <float exact(float)>
HWY_INLINE Lanes WithFarLanes(Lanes x, FloatVector near) {
  const FloatTag d;
  constexpr float kLargest = 39000.0f;
  if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Abs(x.vector), hn::Set(d, kLargest))))) {
    return Lanes(near);
  }
  float numbers[hn::MaxLanes(d)], results[hn::MaxLanes(d)];
  hn::StoreU(x.vector, d, numbers);
  hn::StoreU(near, d, results);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (std::abs(numbers[i]) > kLargest) results[i] = exact(numbers[i]);
  }
  return Lanes(hn::LoadU(d, results));
}

// The error is below 1.5e-7, however large x is.
HWY_INLINE Lanes Sin(Lanes x) { return WithFarLanes<std::sin>(x, hn::Sin(FloatTag(), x.vector)); }
HWY_INLINE Lanes Cos(Lanes x) { return WithFarLanes<std::cos>(x, hn::Cos(FloatTag(), x.vector)); }
HWY_INLINE Lanes Sqrt(Lanes x) { return Lanes(hn::Sqrt(x.vector)); }

// Abramowitz and Stegun, equation 7.1.26; the error is below 1.5e-7.
HWY_INLINE Lanes Erf(Lanes x) {
  const Lanes size(hn::Abs(x.vector));
  const Lanes t = Lanes(1.0) / (Lanes(1.0) + Lanes(0.3275911) * size);
  Lanes sum = Lanes(1.061405429);
  for (const double c : {-1.453152027, 1.421413741, -0.284496736, 0.254829592}) {
    sum = sum * t + Lanes(c);
  }
  const Lanes erf = Lanes(1.0) - sum * t * Exp(Lanes(0.0) - size * size);
  return Lanes(hn::CopySignToAbs(erf.vector, x.vector));
}

#define SYNTRA_FORMULA HWY_INLINE
#include "kernels/math/activation.inc"
#undef SYNTRA_FORMULA

template <typename Function, typename T>
void Activate(int64_t count, bool accumulate, const T* x, T* y) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    StoreResult(Function::Value(Lanes(Load(x + i, lanes))).vector, y + i, lanes, accumulate);
  });
}

template <typename Function, typename T>
void ActivateGrad(int64_t count, bool accumulate, const T* from, const T* dy, T* dx) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const Lanes slope = Function::Slope(Lanes(Load(from + i, lanes)));
    StoreResult(hn::Mul(slope.vector, Load(dy + i, lanes)), dx + i, lanes, accumulate);
  });
}

void Activation(const OpCall& call, const KernelArguments& arguments) {
  WithActivationFunction(call.attributes.Text("kind"), [&](auto function) {
    WithActivation(call.inputs[0].dtype, [&](auto type) {
      using T = decltype(type);
      Activate<decltype(function)>(call.inputs[0].shape.size(), Accumulates(call, 0),
                                   Input<T>(arguments, 0), Output<T>(arguments, 0));
    });
  });
}

void ActivationGrad(const OpCall& call, const KernelArguments& arguments) {
  WithActivationFunction(call.attributes.Text("kind"), [&](auto function) {
    WithActivation(call.inputs[0].dtype, [&](auto type) {
      using T = decltype(type);
      ActivateGrad<decltype(function)>(call.inputs[0].shape.size(), Accumulates(call, 0),
                                       Input<T>(arguments, 0), Input<T>(arguments, 1),
                                       Output<T>(arguments, 0));
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Activation);
HWY_EXPORT(ActivationGrad);

std::optional<BoundKernel> cpu_activation(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(Activation)(call, arguments);
  };
  return kernel;
}

std::optional<BoundKernel> cpu_activation_grad(const OpCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(ActivationGrad)(call, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
