// The table behind BindCudaKernel, built from cuda.def.
#include "base/name_table.h"
#include "kernels/op.h"

namespace syntra {

#define SYNTRA_CUDA_KERNEL(name) std::optional<BoundKernel> cuda_##name(const OpCall& call);
#include "kernels/cuda.def"
#undef SYNTRA_CUDA_KERNEL

namespace {

using BindKernel = std::optional<BoundKernel> (*)(const OpCall&);

const NameTable<BindKernel>& CudaKernels() {
  static const NameTable<BindKernel> table = [] {
    NameTable<BindKernel> kernels("CUDA kernel");
#define SYNTRA_CUDA_KERNEL(name) kernels.Add(#name, &cuda_##name);
#include "kernels/cuda.def"
#undef SYNTRA_CUDA_KERNEL
    return kernels;
  }();
  return table;
}

}  // namespace

std::optional<BoundKernel> BindCudaKernel(const Op& op, const OpCall& call) {
  const BindKernel* bind = CudaKernels().Find(op.name);
  return bind ? (*bind)(call) : std::nullopt;
}

}  // namespace syntra
