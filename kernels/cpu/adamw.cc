// SPDX-License-Identifier: Apache-2.0
// adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019), as in torch, or with the
// step scaled by the parameter's root mean square.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/math/optimizers.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

void AdamwPass(const AdamwConstants& c, const AdamwFactors& f, int64_t count,
               const KernelArguments& arguments) {
  const float* gradient = Input<float>(arguments, 0);
  float *parameter = Output<float>(arguments, 0), *m_at = Output<float>(arguments, 1);
  float* v_at = Output<float>(arguments, 2);
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const FloatTag d;
    const FloatVector g = hn::Mul(Load(gradient + i, lanes), hn::Set(d, f.gradient_scale));
    const FloatVector m = hn::MulAdd(hn::Set(d, c.beta1), Load(m_at + i, lanes),
                                     hn::Mul(hn::Set(d, c.one_minus_beta1), g));
    const FloatVector v = hn::MulAdd(hn::Set(d, c.beta2), Load(v_at + i, lanes),
                                     hn::Mul(hn::Set(d, c.one_minus_beta2), hn::Mul(g, g)));
    const FloatVector root = hn::Sqrt(hn::Mul(v, hn::Set(d, f.v_scale)));
    const FloatVector update =
        hn::Div(hn::Mul(hn::Set(d, f.step), m), hn::Add(root, hn::Set(d, c.epsilon)));
    const FloatVector p = hn::Mul(Load(parameter + i, lanes), hn::Set(d, f.keep_before));
    Store(hn::Mul(hn::Sub(p, update), hn::Set(d, f.keep_after)), parameter + i, lanes);
    Store(m, m_at + i, lanes);
    Store(v, v_at + i, lanes);
  });
}

double AdamwParameterSquares(const float* parameter, int64_t count, double* partial) {
  return ParallelDotInDouble(parameter, parameter, count, partial);
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AdamwPass);
HWY_EXPORT(AdamwParameterSquares);

std::optional<BoundKernel> cpu_adamw(const OpCall& call) {
  const int64_t count = call.outputs[0].shape.size();
  const bool rms_scaled = call.attributes.Flag("rms_scaled");
  BoundKernel kernel;
  if (rms_scaled) kernel.workspace_bytes = ElementBlocks(count) * sizeof(double);
  kernel.run = [=,
                constants = AdamwConstants::Of(call.attributes)](const KernelArguments& arguments) {
    const float* hyper = Input<float>(arguments, 1);
    if (!ChangesAnything(hyper)) return;
    AdamwFactors factors = AdamwFactors::Plain(hyper);
    if (rms_scaled) {
      const double squares = HWY_DYNAMIC_DISPATCH(AdamwParameterSquares)(
          Output<float>(arguments, 0), count, reinterpret_cast<double*>(arguments.workspace));
      factors = AdamwFactors::Scaled(hyper, std::sqrt(squares / static_cast<double>(count)));
    }
    HWY_DYNAMIC_DISPATCH(AdamwPass)(constants, factors, count, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
