// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "kernels/cuda.h"
#include "tests/kernels/tested.h"
#include "tests/simt/access_check.h"
#include "tests/simt/simt.h"

namespace syntra {
namespace {

// While an object exists, kernels must not access the guards of an operand.
class Guards {
 public:
  Guards(const void* operand, size_t bytes)
      : before_({static_cast<const std::byte*>(operand) - kTestedGuard, kTestedGuard}),
        behind_({static_cast<const std::byte*>(operand) + bytes, kTestedGuard}) {}

 private:
  simt::access_check::Forbidden before_, behind_;
};

}  // namespace

Backend& FastBackend() {
  static const std::unique_ptr<Backend> gpu = OpenGpu(0);
  return *gpu;
}

std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call) {
  std::optional<BoundKernel> kernel = BindCudaKernel(op, call);
  if (!kernel) return kernel;
  kernel->run = [run = std::move(kernel->run), call,
                 workspace_bytes = kernel->workspace_bytes](const KernelArguments& arguments) {
    std::deque<Guards> guards;
    const auto guard = [&](const void* operand, size_t bytes) {
      if (operand) guards.emplace_back(operand, bytes);
    };
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      guard(arguments.inputs[i], call.inputs[i].bytes());
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      guard(arguments.outputs[i], call.outputs[i].bytes());
    }
    guard(arguments.workspace, workspace_bytes);
    run(arguments);
  };
  return kernel;
}

bool IsSimulated() { return true; }

bool SumsProductsAlike() { return true; }

void InSeveralWays(const std::function<void(const std::string& way)>& run) {
  using simt::Order;
  // A race shows in any order, and the first run looked for them. The others only compare results.
  const simt::access_check::Unchecked unchecked;
  for (const auto& [order, way] : {std::pair(Order::kBackward, "threads backward"),
                                   std::pair(Order::kShuffled, "threads shuffled")}) {
    simt::SetOrder(order);
    run(way);
  }
  simt::SetOrder(Order::kForward);
}

std::string TakeComplaints() { return simt::TakeComplaints(); }

}  // namespace syntra
