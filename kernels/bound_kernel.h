// SPDX-License-Identifier: Apache-2.0
// A kernel that is bound to a call. Kernels know calls, but not the ops' rows (op.h).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "kernels/op_call.h"

namespace syntra {

struct Op;

struct KernelArguments {
  std::span<void*const> inputs, outputs;  // null: absent
  std::byte* workspace;                   // 64-byte aligned
  void* stream = nullptr;                 // of a GPU; `run` then only enqueues work on it
};

// An op call that is ready to run: primitives are created, shapes are resolved. Running it
// allocates nothing.
struct BoundKernel {
  std::function<void(const KernelArguments&)> run;
  size_t workspace_bytes = 0;
  // Whether `run` honours OpCall::accumulate. If not, the caller adds afterwards.
  bool accumulates = false;
};

// A call that is bound has inputs that Op::infer accepts (some may be bf16 copies, see
// Backend::RoundsParameters) and outputs of the types that it gives, at least one of them present.
// So kernels check only for what they do not serve.

// nullopt if there is no CPU kernel for this call. The reference can run instead.
std::optional<BoundKernel> BindCpuKernel(const Op& op, const OpCall& call);

// nullopt if there is no CUDA kernel for this call. Nothing can run instead. Operands and workspace
// are in the GPU's memory.
std::optional<BoundKernel> BindCudaKernel(const Op& op, const OpCall& call);

// Returns one kernel for several calls of one op; see Backend::BindMultiTensor.
std::optional<BoundKernel> BindCudaMultiTensor(const Op& op, std::span<const OpCall> calls);

// The reference as a kernel on host tensors of the call's types, which it converts to doubles and
// back.
BoundKernel BindReferenceOnHost(const Op& op, const OpCall& call);

}  // namespace syntra
