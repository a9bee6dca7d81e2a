// SPDX-License-Identifier: Apache-2.0
#include "core/thread.h"
#include "tests/kernels/tested.h"

namespace syntra {

Backend& FastBackend() { return CpuBackend(); }

std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call) {
  return BindCpuKernel(op, call);
}

bool IsSimulated() { return false; }

bool SumsProductsAlike() { return true; }

void InSeveralWays(const std::function<void(const std::string& way)>& run) {
  const int saved = ThreadCount();
  for (const int threads : {1, 2, 3}) {
    SetThreadCount(threads);
    run(std::to_string(threads) + " threads");
  }
  SetThreadCount(saved);
}

std::string TakeComplaints() { return ""; }

}  // namespace syntra
