// SPDX-License-Identifier: Apache-2.0
// adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019), as in torch, or with the
// step scaled by the parameter's root mean square. The device reads the hyperparameters, so that a
// captured step follows the schedule. A further output gets the parameter in bf16
// (kernels/backend.h).
#include "kernels/cuda/multi_tensor.h"
#include "kernels/cuda/reduce.h"
#include "kernels/math/optimizers.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

// The workspace of a tensor whose step is scaled by its root mean square.
struct Scratch {
  double partial[kElementParts];  // of the sum of p^2
  float root_mean_square;
};

struct Tensor {
  int64_t count;
  const float *gradient, *hyper;
  float *parameter, *m, *v;
  BFloat16* rounded;  // the parameter in bf16; null: not kept
  Scratch* scratch;   // null: plain
};

struct SumSquares {
  static int64_t PartsOf(const Tensor& tensor) { return ElementPartsOf(tensor.count); }
  __device__ void operator()(const Tensor& tensor, Part part) const {
    const double sum =
        SumOfPart(tensor.count, ProductTerm<float, float>{tensor.parameter, tensor.parameter}, part,
                  Shared<SumStorage>());
    if (ThreadIndex() == 0) tensor.scratch->partial[part.index] = sum;
  }
};

struct FinishRootMeanSquare {
  static int64_t PartsOf(const Tensor&) { return 1; }
  __device__ void operator()(const Tensor& tensor, Part) const {
    const double squares =
        SumOfParts(tensor.scratch->partial, ElementPartsOf(tensor.count), Shared<SumStorage>());
    if (ThreadIndex() == 0) {
      tensor.scratch->root_mean_square =
          static_cast<float>(sqrt(squares / static_cast<double>(tensor.count)));
    }
  }
};

struct Update {
  AdamwConstants constants;

  static int64_t PartsOf(const Tensor& tensor) { return ElementwiseParts(tensor.count); }

  __device__ void operator()(const Tensor& tensor, Part part) const {
    if (!ChangesAnything(tensor.hyper)) return;
    const AdamwConstants& c = constants;
    const AdamwFactors f =
        tensor.scratch == nullptr
            ? AdamwFactors::Plain(tensor.hyper)
            : AdamwFactors::Scaled(tensor.hyper, tensor.scratch->root_mean_square);
    ElementsOf(tensor.count, part, [&](int64_t i, int count) {
      const Eight g = LoadEight(tensor.gradient + i, count);
      Eight p = LoadEight(tensor.parameter + i, count), m = LoadEight(tensor.m + i, count),
            v = LoadEight(tensor.v + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const float scaled = g[k] * f.gradient_scale;
        m[k] = c.beta1 * m[k] + c.one_minus_beta1 * scaled;
        v[k] = c.beta2 * v[k] + c.one_minus_beta2 * (scaled * scaled);
        const float update = f.step * m[k] / (sqrtf(v[k] * f.v_scale) + c.epsilon);
        p[k] = (p[k] * f.keep_before - update) * f.keep_after;
      }
      StoreEight(p, tensor.parameter + i, count);
      StoreEight(m, tensor.m + i, count);
      StoreEight(v, tensor.v + i, count);
      if (tensor.rounded != nullptr) StoreEight(p, tensor.rounded + i, count);
    });
  }
};

}  // namespace

std::optional<BoundKernel> cuda_adamw(std::span<const OpCall> calls) {
  const Attributes& attributes = calls[0].attributes;
  std::vector<Tensor> tensors;
  for (const OpCall& call : calls) {
    if (call.attributes != attributes) return std::nullopt;
    tensors.push_back({.count = call.outputs[0].shape.size()});
  }
  const bool rms_scaled = attributes.Flag("rms_scaled");
  BoundKernel kernel;
  if (rms_scaled) kernel.workspace_bytes = calls.size() * sizeof(Scratch);
  kernel.run = [tensors, rms_scaled, places = OperandPlaces(calls),
                update =
                    Update{AdamwConstants::Of(attributes)}](const KernelArguments& all) mutable {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const KernelArguments own = places.Of(all, i);
      Tensor& tensor = tensors[i];
      tensor.gradient = Input<float>(own, 0);
      tensor.hyper = Input<float>(own, 1);
      tensor.parameter = Output<float>(own, 0);
      tensor.m = Output<float>(own, 1);
      tensor.v = Output<float>(own, 2);
      if (own.outputs.size() > 3) tensor.rounded = Output<BFloat16>(own, 3);
      if (rms_scaled) tensor.scratch = reinterpret_cast<Scratch*>(all.workspace) + i;
    }
    if (rms_scaled) {
      ForEachTensor(all, tensors, SumSquares{}, sizeof(SumStorage));
      ForEachTensor(all, tensors, FinishRootMeanSquare{}, sizeof(SumStorage));
    }
    ForEachTensor(all, tensors, update);
  };
  return kernel;
}

}  // namespace syntra
