// SPDX-License-Identifier: Apache-2.0
// The tables behind BindCudaKernel and BindCudaMultiTensor, built from cuda.def.
#include <set>
#include <string>

#include "base/name_table.h"
#include "kernels/cuda/backend.h"
#include "kernels/op.h"

namespace syntra {

#define SYNTRA_CUDA_KERNEL(name) std::optional<BoundKernel> cuda_##name(const OpCall& call);
#define SYNTRA_CUDA_PRODUCT(name) SYNTRA_CUDA_KERNEL(name)
#define SYNTRA_CUDA_MULTI_TENSOR(name) \
  std::optional<BoundKernel> cuda_##name(std::span<const OpCall> calls);
#include "kernels/cuda.def"
#undef SYNTRA_CUDA_KERNEL
#undef SYNTRA_CUDA_PRODUCT
#undef SYNTRA_CUDA_MULTI_TENSOR

namespace {

using BindKernel = std::optional<BoundKernel> (*)(const OpCall&);
using BindMultiTensor = std::optional<BoundKernel> (*)(std::span<const OpCall>);

struct CudaKernels {
  NameTable<BindKernel> single{"CUDA kernel"};
  NameTable<BindMultiTensor> multi_tensor{"multi-tensor CUDA kernel"};
  std::set<std::string> products;
};

const CudaKernels& Kernels() {
  static const CudaKernels table = [] {
    CudaKernels kernels;
#define SYNTRA_CUDA_KERNEL(name) kernels.single.Add(#name, &cuda_##name);
#define SYNTRA_CUDA_PRODUCT(name) \
  SYNTRA_CUDA_KERNEL(name)        \
  kernels.products.insert(#name);
#define SYNTRA_CUDA_MULTI_TENSOR(name) kernels.multi_tensor.Add(#name, &cuda_##name);
#include "kernels/cuda.def"
#undef SYNTRA_CUDA_KERNEL
#undef SYNTRA_CUDA_PRODUCT
#undef SYNTRA_CUDA_MULTI_TENSOR
    return kernels;
  }();
  return table;
}

}  // namespace

bool IsCudaProduct(const Op& op) { return Kernels().products.contains(op.name); }

std::optional<BoundKernel> BindCudaKernel(const Op& op, const OpCall& call) {
  if (const BindKernel* bind = Kernels().single.Find(op.name)) return (*bind)(call);
  return BindCudaMultiTensor(op, std::span(&call, 1));
}

std::optional<BoundKernel> BindCudaMultiTensor(const Op& op, std::span<const OpCall> calls) {
  const BindMultiTensor* bind = Kernels().multi_tensor.Find(op.name);
  return bind ? (*bind)(calls) : std::nullopt;
}

}  // namespace syntra
