// SPDX-License-Identifier: Apache-2.0
// The tables behind GetOp and BindCpuKernel, built from ops.def.
#include "base/name_table.h"
#include "kernels/bound_kernel.h"
#include "kernels/op.h"

namespace syntra {

#define SYNTRA_OP(name) \
  Op op_##name();       \
  std::optional<BoundKernel> cpu_##name(const OpCall& call);
#include "kernels/ops.def"
#undef SYNTRA_OP

namespace {

void AddOp(NameTable<Op>& ops, const char* name, Op op) {
  op.name = name;
  ops.Add(name, std::move(op));
}

const NameTable<Op>& Ops() {
  static const NameTable<Op> table = [] {
    NameTable<Op> ops("op");
#define SYNTRA_OP(row) AddOp(ops, #row, op_##row());
#include "kernels/ops.def"
#undef SYNTRA_OP
    return ops;
  }();
  return table;
}

using BindKernel = std::optional<BoundKernel> (*)(const OpCall&);

const NameTable<BindKernel>& CpuKernels() {
  static const NameTable<BindKernel> table = [] {
    NameTable<BindKernel> kernels("CPU kernel");
#define SYNTRA_OP(name) kernels.Add(#name, &cpu_##name);
#include "kernels/ops.def"
#undef SYNTRA_OP
    return kernels;
  }();
  return table;
}

}  // namespace

const Op& GetOp(std::string_view name) {
  const Op* op = Ops().Find(name);
  SYNTRA_CHECK(op, "unknown op {}", name);
  return *op;
}

std::optional<BoundKernel> BindCpuKernel(const Op& op, const OpCall& call) {
  const BindKernel* bind = CpuKernels().Find(op.name);
  return bind ? (*bind)(call) : std::nullopt;
}

}  // namespace syntra
