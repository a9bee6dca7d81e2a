// SPDX-License-Identifier: Apache-2.0
// adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019), as in torch, or with the
// step scaled by the parameter's root mean square.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/math/adafactor.h"
#include "kernels/math/hyperparameters.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// p = p * keep - step * m / (sqrt(v * v_scale) + epsilon), then p *= keep_after.
void AdamwPass(const AdamwFactors& f, const AdamwTensors& tensors, int64_t count) {
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const FloatTag d;
    const FloatVector g = hn::Mul(Load(tensors.gradient + i, lanes), hn::Set(d, f.gradient_scale));
    const FloatVector m = hn::MulAdd(hn::Set(d, f.beta1), Load(tensors.m + i, lanes),
                                     hn::Mul(hn::Set(d, f.one_minus_beta1), g));
    const FloatVector v = hn::MulAdd(hn::Set(d, f.beta2), Load(tensors.v + i, lanes),
                                     hn::Mul(hn::Set(d, f.one_minus_beta2), hn::Mul(g, g)));
    const FloatVector root = hn::Sqrt(hn::Mul(v, hn::Set(d, f.v_scale)));
    const FloatVector update =
        hn::Div(hn::Mul(hn::Set(d, f.step), m), hn::Add(root, hn::Set(d, f.epsilon)));
    const FloatVector p = hn::Mul(Load(tensors.parameter + i, lanes), hn::Set(d, f.keep_before));
    Store(hn::Mul(hn::Sub(p, update), hn::Set(d, f.keep_after)), tensors.parameter + i, lanes);
    Store(m, tensors.m + i, lanes);
    Store(v, tensors.v + i, lanes);
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
  for (const TensorType& type : call.inputs) {
    if (!IsF32(type)) return std::nullopt;
  }
  for (const TensorType& type : call.outputs) {
    if (!IsF32(type)) return std::nullopt;
  }
  const int64_t count = call.outputs[0].shape.size();
  const double beta1 = call.attributes.Number("beta1"), beta2 = call.attributes.Number("beta2");
  const bool rms_scaled = call.attributes.Flag("rms_scaled");
  AdamwFactors constant;
  constant.beta1 = static_cast<float>(beta1);
  constant.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  constant.beta2 = static_cast<float>(beta2);
  constant.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  constant.epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  BoundKernel kernel;
  if (rms_scaled) kernel.workspace_bytes = ElementBlocks(count) * sizeof(double);
  kernel.run = [=](const KernelArguments& arguments) {
    const float* hyper = Input<float>(arguments, 1);
    const double rate = hyper[hyper::kRate], weight_decay = hyper[hyper::kWeightDecay];
    const double bias1 = hyper[hyper::kBias1], bias2 = hyper[hyper::kBias2];
    const AdamwTensors tensors{Input<float>(arguments, 0), Output<float>(arguments, 0),
                               Output<float>(arguments, 1), Output<float>(arguments, 2)};
    AdamwFactors f = constant;
    f.gradient_scale = hyper[hyper::kGradientScale];
    if (!std::isfinite(f.gradient_scale)) return;
    if (rms_scaled) {
      const double squares = HWY_DYNAMIC_DISPATCH(AdamwParameterSquares)(
          tensors.parameter, count, reinterpret_cast<double*>(arguments.workspace));
      const double rms = std::sqrt(squares / static_cast<double>(count));
      f.step = static_cast<float>(rate * std::max(adafactor::kScaleFloor, rms) * std::sqrt(bias2) /
                                  bias1);
      f.keep_after = static_cast<float>(1.0 - rate * weight_decay);
    } else {
      f.step = static_cast<float>(rate / bias1);
      f.v_scale = static_cast<float>(1.0 / bias2);
      f.keep_before = static_cast<float>(1.0 - rate * weight_decay);
    }
    HWY_DYNAMIC_DISPATCH(AdamwPass)(f, tensors, count);
  };
  return kernel;
}

}  // namespace syntra
#endif
