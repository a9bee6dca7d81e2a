#include "kernels/cuda.h"
#include "tests/kernels/tested.h"
#include "tests/simt/race_check.h"
#include "tests/simt/simt.h"

namespace syntra {

Backend& FastBackend() {
  static const std::unique_ptr<Backend> gpu = OpenGpu(0);
  return *gpu;
}

std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call) {
  return BindCudaKernel(op, call);
}

void InSeveralWays(const std::function<void(const std::string& way)>& run) {
  using simt::Order;
  // A race is one in any order, and was looked for in the first; here the results count.
  const simt::race_check::Aside aside;
  for (const auto& [order, way] : {std::pair(Order::kBackward, "threads backward"),
                                   std::pair(Order::kShuffled, "threads shuffled")}) {
    simt::SetOrder(order);
    run(way);
  }
  simt::SetOrder(Order::kForward);
}

std::string TakeComplaints() { return simt::TakeComplaints(); }

}  // namespace syntra
