// SPDX-License-Identifier: Apache-2.0
// Launches one kernel over many tensors. Each tensor gets as many blocks as it has work for. An
// update of hundreds of small parameters then takes a few launches instead of thousands.
#pragma once

#include <span>
#include <vector>

#include "base/divide.h"
#include "kernels/cuda/launch.h"

namespace syntra::gpu {

// The most bytes of parameters of a kernel (CUDA 12.1 and newer, sm_70 and newer: RequireDriver).
inline constexpr size_t kMostParameterBytes = 32764;

// The tensors of a launch. They are kernel parameters, so that a captured launch keeps them. Tensor
// is a struct of pointers and numbers.
template <typename Tensor>
struct TensorList {
  static constexpr int kMost = (kMostParameterBytes - 256) / (sizeof(Tensor) + sizeof(uint32_t));
  Tensor tensors[kMost];
  uint32_t end[kMost];  // the block after a tensor's last one
  int count;

  // The tensor of a block: the first one that ends after it.
  __device__ int TensorOf(uint32_t block) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (end[middle] > block) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

template <typename Tensor, typename Pass>
__global__ void EachTensorKernel(const TensorList<Tensor> __grid_constant__ list, Pass pass) {
  const auto block = static_cast<uint32_t>(BlockIndex());
  const int i = list.TensorOf(block);
  const uint32_t begin = i == 0 ? 0 : list.end[i - 1];
  pass(list.tensors[i], Part{block - begin, list.end[i] - begin});
}

// For each part of each tensor, calls pass(tensor, part) on the device with all threads of a block.
// A tensor may have no parts. Pass is a struct with a static PartsOf(const Tensor&) and a
// __device__ operator()(const Tensor&, Part) const.
template <typename Tensor, typename Pass>
void ForEachTensor(const KernelArguments& call, const std::vector<Tensor>& all, const Pass& pass,
                   size_t shared_bytes = 0) {
  using List = TensorList<Tensor>;
  static_assert(sizeof(List) + sizeof(Pass) <= kMostParameterBytes);
  for (size_t first = 0; first < all.size(); first += List::kMost) {
    List list = {};
    int64_t blocks = 0;
    for (size_t i = first; i < all.size() && list.count < List::kMost; ++i) {
      list.tensors[list.count] = all[i];
      blocks += Pass::PartsOf(all[i]);
      list.end[list.count++] = static_cast<uint32_t>(blocks);
    }
    if (blocks > 0) {
      Launch(call, {blocks, kThreads, shared_bytes}, EachTensorKernel<Tensor, Pass>, list, pass);
    }
  }
}

// The number of parts for a loop over a tensor's elements in which a thread handles eight at a
// time.
inline int64_t ElementwiseParts(int64_t count) {
  constexpr int64_t kOfAPart = int64_t{4} * kThreads * kEight;
  return DivideUp(count, kOfAPart);
}

// The places of each call's operands among the operands of a multi-tensor kernel.
class OperandPlaces {
 public:
  explicit OperandPlaces(std::span<const OpCall> calls) {
    size_t inputs = 0, outputs = 0;
    for (const OpCall& call : calls) {
      places_.push_back({inputs, outputs, call.inputs.size(), call.outputs.size()});
      inputs += call.inputs.size();
      outputs += call.outputs.size();
    }
  }
  KernelArguments Of(const KernelArguments& all, size_t i) const {
    const Place& place = places_[i];
    return {all.inputs.subspan(place.input, place.inputs),
            all.outputs.subspan(place.output, place.outputs), all.workspace, all.stream};
  }

 private:
  struct Place {
    size_t input, output, inputs, outputs;
  };
  std::vector<Place> places_;
};

}  // namespace syntra::gpu
