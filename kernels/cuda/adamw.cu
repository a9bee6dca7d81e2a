// adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019), plain as in torch, or with
// the step scaled by the parameter's root mean square. The hyperparameters are read on the device,
// so that a captured step follows the schedule.
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

struct Adamw {
  const float *gradient, *hyper;
  float *parameter, *m, *v;
  float beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
  const float* root_mean_square;  // null: plain

  // p = p * keep_before - step * m / (sqrt(v * v_scale) + epsilon), then p *= keep_after.
  struct Factors {
    float gradient_scale, step, v_scale, keep_before, keep_after;
  };

  __device__ Factors FactorsNow() const {
    const double rate = hyper[0], bias1 = hyper[2], bias2 = hyper[3];
    const auto keep = static_cast<float>(1.0 - rate * hyper[4]);
    if (root_mean_square == nullptr) {
      return {hyper[1], static_cast<float>(rate / bias1), static_cast<float>(1.0 / bias2), keep,
              1.0f};
    }
    const double scale = fmax(1e-3, static_cast<double>(*root_mean_square));
    return {hyper[1], static_cast<float>(rate * scale * sqrt(bias2) / bias1), 1.0f, 1.0f, keep};
  }

  __device__ void operator()(int64_t i, int count) const {
    if (!std::isfinite(hyper[1])) return;
    const Factors f = FactorsNow();
    const Eight g = LoadEight(gradient + i, count);
    Eight p = LoadEight(parameter + i, count), first = LoadEight(m + i, count),
          second = LoadEight(v + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const float scaled = g[k] * f.gradient_scale;
      first[k] = beta1 * first[k] + one_minus_beta1 * scaled;
      second[k] = beta2 * second[k] + one_minus_beta2 * (scaled * scaled);
      const float update = f.step * first[k] / (sqrtf(second[k] * f.v_scale) + epsilon);
      p[k] = (p[k] * f.keep_before - update) * f.keep_after;
    }
    StoreEight(p, parameter + i, count);
    StoreEight(first, m + i, count);
    StoreEight(second, v + i, count);
  }
};

struct StoreRootMeanSquare {
  int64_t count;
  float* result;
  __device__ void operator()(double squares) const {
    *result = static_cast<float>(sqrt(squares / static_cast<double>(count)));
  }
};

}  // namespace

std::optional<BoundKernel> cuda_adamw(const OpCall& call) {
  if (!IsF32(call.inputs[0]) || !IsF32(call.outputs[0])) return std::nullopt;
  const double beta1 = call.attributes.Number("beta1"), beta2 = call.attributes.Number("beta2");
  Adamw constant = {};
  constant.beta1 = static_cast<float>(beta1);
  constant.beta2 = static_cast<float>(beta2);
  constant.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  constant.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  constant.epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  BoundKernel kernel;
  const bool rms_scaled = call.attributes.Flag("rms_scaled");
  if (rms_scaled) kernel.workspace_bytes = kSumBytes + sizeof(float);
  kernel.run = [=, count = call.outputs[0].shape.size()](const KernelArguments& arguments) {
    Adamw update = constant;
    update.gradient = Input<float>(arguments, 0);
    update.hyper = Input<float>(arguments, 1);
    update.parameter = Output<float>(arguments, 0);
    update.m = Output<float>(arguments, 1);
    update.v = Output<float>(arguments, 2);
    if (rms_scaled) {
      auto* result = reinterpret_cast<float*>(arguments.workspace + kSumBytes);
      SumElements(arguments, count, ProductTerm<float, float>{update.parameter, update.parameter},
                  reinterpret_cast<double*>(arguments.workspace),
                  StoreRootMeanSquare{count, result});
      update.root_mean_square = result;
    }
    Elementwise(arguments, count, update);
  };
  return kernel;
}

}  // namespace syntra
