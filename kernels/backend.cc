// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <set>

#include "base/log.h"
#include "kernels/bfloat16.h"
#include "kernels/cpu/peak.h"
#include "kernels/cpu/processor.h"
#include "kernels/op.h"

namespace syntra {
namespace {

template <typename T, typename Add>
void AddTo(const TensorType& type, void* to, const void* from, const Add& add) {
  type.ForEachRun([&](int64_t place, int64_t count) {
    T* sum = static_cast<T*>(to) + place;
    const T* term = static_cast<const T*>(from) + place;
    for (int64_t i = 0; i < count; ++i) sum[i] = add(sum[i], term[i]);
  });
}

void AddTensor(const TensorType& type, void* to, const void* from) {
  switch (type.dtype) {
    case DType::kF32:
      return AddTo<float>(type, to, from, std::plus<>());
    case DType::kF64:
      return AddTo<double>(type, to, from, std::plus<>());
    case DType::kBF16:
      return AddTo<BFloat16>(type, to, from, [](BFloat16 a, BFloat16 b) {
        return ToBFloat16(ToFloat(a) + ToFloat(b));
      });
    default:
      Fail(ExitCode::kInternal, "cannot add to {}", ToString(type));
  }
}

// Makes a host kernel honour call.accumulate. If the kernel does not, it writes outputs that
// accumulate to the workspace, from where they are added.
BoundKernel WithAccumulation(BoundKernel kernel, const OpCall& call) {
  if (kernel.accumulates || std::ranges::find(call.accumulate, true) == call.accumulate.end()) {
    return kernel;
  }
  std::vector<size_t> place(call.outputs.size());
  size_t bytes = AlignUp(kernel.workspace_bytes);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.accumulate[i]) continue;
    place[i] = bytes;
    bytes += AlignUp(call.outputs[i].bytes());
  }
  BoundKernel wrapped;
  wrapped.workspace_bytes = bytes;
  wrapped.accumulates = true;
  wrapped.run = [inner = std::move(kernel.run), call, place](const KernelArguments& arguments) {
    // With a fixed array a run allocates nothing.
    std::array<void*, 1 + kMostJoined> outputs{};
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      outputs[i] = call.accumulate[i] ? arguments.workspace + place[i] : arguments.outputs[i];
    }
    KernelArguments inside = arguments;
    inside.outputs = {outputs.data(), call.outputs.size()};
    inner(inside);
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.accumulate[i]) AddTensor(call.outputs[i], arguments.outputs[i], outputs[i]);
    }
  };
  return wrapped;
}

class Reference final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  Device& device() override { return Host(); }
  TensorType Stored(const TensorType& type) const override {
    return {IsFloat(type.dtype) ? DType::kF64 : type.dtype, type.shape};
  }
  double PeakFlops(DType) override { return std::numeric_limits<double>::quiet_NaN(); }
  std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) override {
    return WithAccumulation(BindReferenceOnHost(op, call), call);
  }
};

class Cpu final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Device& device() override { return Host(); }
  double PeakFlops(DType type) override { return MeasurePeakFlops(type, kBriefPeakSeconds); }
  bool MultipliesBFloat16() const override { return HasBFloat16Products(); }
  std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) override {
    std::optional<BoundKernel> kernel = BindCpuKernel(op, call);
    if (!kernel) kernel = Fallback(op, call);
    return WithAccumulation(std::move(*kernel), call);
  }

 private:
  // The log names a slow path when it first runs, not when it is bound: `plan` binds but runs
  // nothing.
  BoundKernel Fallback(const Op& op, const OpCall& call) {
    BoundKernel kernel = BindReferenceOnHost(op, call);
    kernel.run = [this, name = op.name, attributes = call.attributes.ToString(),
                  run = std::move(kernel.run)](const KernelArguments& arguments) {
      LogOnce(name, attributes);
      run(arguments);
    };
    return kernel;
  }

  void LogOnce(const std::string& op, const std::string& attributes) {
    const std::scoped_lock lock(mutex_);
    if (logged_.contains(op)) return;
    logged_.insert(op);
    Log().warn("{} {{{}}} has no CPU kernel; the slow reference runs", op, attributes);
  }
  std::mutex mutex_;
  std::set<std::string> logged_;
};

}  // namespace

Backend& ReferenceBackend() {
  static Reference reference;
  return reference;
}

Backend& CpuBackend() {
  static Cpu cpu;
  return cpu;
}

}  // namespace syntra
