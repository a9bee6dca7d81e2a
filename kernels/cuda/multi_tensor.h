// SPDX-License-Identifier: Apache-2.0
// One launch over many tensors, each with as many blocks as it has work for: an update of hundreds
// of small parameters then costs a few launches, not thousands.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/launch.h"

namespace syntra::gpu {

// What the parameters of one kernel may take (from CUDA 12.1 on, sm_70 and newer).
inline constexpr size_t kMostParameterBytes = 32764;

// The tensors of a launch. They are its parameters, so a captured launch keeps them. Tensor: a
// struct of pointers and numbers.
template <typename Tensor>
struct TensorList {
  static constexpr int kMost = (kMostParameterBytes - 256) / (sizeof(Tensor) + sizeof(uint32_t));
  Tensor tensors[kMost];
  uint32_t end[kMost];  // the block after a tensor's last
  int count;

  // The tensor that a block of the launch works on: the first that ends behind it.
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

// Calls pass(tensor, part) on the device with all threads of a block for each tensor and each of
// its parts; where it has none, not at all. Pass: a struct with a static PartsOf(const Tensor&) and
// a __device__ operator()(const Tensor&, Part) const.
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

// The parts of a loop over a tensor's elements that moves eight a thread at a time.
inline int64_t ElementwiseParts(int64_t count) {
  constexpr int64_t kOfAPart = int64_t{4} * kThreads * kEight;
  return (count + kOfAPart - 1) / kOfAPart;
}

// Where the operands of each of several calls begin in those of the kernel that does all.
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
