#include "program/bind.h"

#include <mutex>
#include <set>

#include "base/log.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

template <typename T, typename Add>
void AddTo(void* to, const void* from, int64_t count, const Add& add) {
  T* sum = static_cast<T*>(to);
  const T* term = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) sum[i] = add(sum[i], term[i]);
}

void AddTensor(const TensorType& type, void* to, const void* from) {
  const int64_t count = type.shape.size();
  switch (type.dtype) {
    case DType::kF32:
      return AddTo<float>(to, from, count, std::plus<>());
    case DType::kF64:
      return AddTo<double>(to, from, count, std::plus<>());
    case DType::kBF16:
      return AddTo<BFloat16>(to, from, count, [](BFloat16 a, BFloat16 b) {
        return ToBFloat16(ToFloat(a) + ToFloat(b));
      });
    default:
      Fail(ExitCode::kInternal, "cannot add to {}", ToString(type));
  }
}

// Runs `kernel` into workspace for the outputs that accumulate, then adds.
BoundKernel WithAccumulation(BoundKernel kernel, const OpCall& call) {
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
    // At most a handful of outputs: a fixed array keeps the run free of allocation.
    std::array<void*, 16> outputs{};
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      outputs[i] = call.accumulate[i] ? arguments.workspace + place[i] : arguments.outputs[i];
    }
    inner({arguments.inputs, {outputs.data(), call.outputs.size()}, arguments.workspace});
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.accumulate[i]) AddTensor(call.outputs[i], arguments.outputs[i], outputs[i]);
    }
  };
  return wrapped;
}

// Slow paths are allowed but never silent.
void LogFallback(const Op& op, const OpCall& call) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::scoped_lock lock(mutex);
  if (seen.insert(op.name).second) {
    Log().warn("{} {{{}}} has no CPU kernel; the slow reference runs", op.name,
               call.attributes.ToString());
  }
}

}  // namespace

TensorType BackendType(const TensorType& type, Backend backend) {
  const bool wide = backend == Backend::kReference && IsFloat(type.dtype);
  return {wide ? DType::kF64 : type.dtype, type.shape};
}

BoundKernel BindKernel(const Op& op, const OpCall& call, Backend backend) {
  ErrorContext context([&] { return fmt::format("binding {}", op.name); });
  OpCall typed = call;
  for (TensorType& type : typed.inputs) type = BackendType(type, backend);
  for (TensorType& type : typed.outputs) type = BackendType(type, backend);
  std::optional<BoundKernel> kernel;
  if (backend == Backend::kCpu) {
    kernel = BindCpuKernel(op, typed);
    if (!kernel) LogFallback(op, typed);
  }
  if (!kernel) kernel = BindReferenceOnHost(op, typed);
  const bool accumulates =
      std::find(typed.accumulate.begin(), typed.accumulate.end(), true) != typed.accumulate.end();
  if (accumulates && !kernel->accumulates) return WithAccumulation(std::move(*kernel), typed);
  return std::move(*kernel);
}

}  // namespace syntra
