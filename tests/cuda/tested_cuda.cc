// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels on a GPU as the backend under test. Operands of single kernels are copied to the
// GPU and back, together with their guards.
#include <algorithm>

#include "kernels/cuda.h"
#include "kernels/op.h"
#include "tests/kernels/tested.h"

namespace syntra {
namespace {

// The copy of an operand and its guards on the GPU.
class Copy {
 public:
  Copy(Device& device, void* host, size_t bytes)
      : device_(device),
        host_(static_cast<std::byte*>(host) - kTestedGuard),
        memory_(device.Allocate(bytes + 2 * kTestedGuard, "a test operand")) {
    device_.CopyIn(memory_.data(), host_, memory_.size());
  }
  std::byte* data() const { return memory_.data() + kTestedGuard; }
  const void* host() const { return host_ + kTestedGuard; }
  void Return() const { device_.CopyOut(host_, memory_.data(), memory_.size()); }

 private:
  Device& device_;
  std::byte* host_;
  Buffer memory_;
};

}  // namespace

Backend& FastBackend() {
  static const std::unique_ptr<Backend> gpu = OpenGpu(0);
  return *gpu;
}

std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call) {
  std::optional<BoundKernel> kernel = BindCudaKernel(op, call);
  if (!kernel) return kernel;
  const size_t workspace_bytes = kernel->workspace_bytes;
  const OperandRange joined = op.side_by_side ? op.side_by_side(call) : OperandRange{};
  kernel->run = [inner = std::move(kernel->run), call, workspace_bytes,
                 joined](const KernelArguments& arguments) {
    Device& device = FastBackend().device();
    std::vector<Copy> copies;
    // An output may lie in an input's memory.
    const auto place = [&](void* host, size_t bytes) -> void* {
      if (host == nullptr) return nullptr;
      const auto placed = std::ranges::find(copies, host, &Copy::host);
      if (placed != copies.end()) return placed->data();
      return copies.emplace_back(device, host, bytes).data();
    };
    // Operands side by side are columns of one matrix, which is copied as a whole.
    const auto place_all = [&](std::span<void* const> hosts, const std::vector<TensorType>& types,
                               bool are_outputs) {
      std::vector<void*> placed;
      for (size_t i = 0; i < types.size(); ++i) {
        const TensorType& type = types[i];
        const bool is_beside = are_outputs == joined.of_outputs && i >= joined.first &&
                               i < joined.first + joined.count && type.pitch > 0;
        if (!is_beside) {
          placed.push_back(place(hosts[i], type.bytes()));
        } else if (i == joined.first) {
          placed.push_back(place(hosts[i], type.shape.rows() * type.pitch * SizeOf(type.dtype)));
        } else {
          const size_t columns = types[i - 1].shape[-1];
          placed.push_back(static_cast<std::byte*>(placed.back()) + columns * SizeOf(type.dtype));
        }
      }
      return placed;
    };
    const std::vector<void*> inputs = place_all(arguments.inputs, call.inputs, false);
    const std::vector<void*> outputs = place_all(arguments.outputs, call.outputs, true);
    void* workspace = place(arguments.workspace, workspace_bytes);
    inner({inputs, outputs, static_cast<std::byte*>(workspace), device.stream()});
    for (const Copy& copy : copies) copy.Return();
  };
  return kernel;
}

bool IsSimulated() { return false; }

bool SumsProductsAlike() { return false; }

void InSeveralWays(const std::function<void(const std::string& way)>& run) {
  for (const char* way : {"a first run", "a second run", "a third run"}) run(way);
}

std::string TakeComplaints() { return ""; }

}  // namespace syntra
