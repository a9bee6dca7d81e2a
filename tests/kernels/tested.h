// SPDX-License-Identifier: Apache-2.0
// The backend under test: every test of kernels, programs and models is linked with each of several
// (tested_cpu.cc, simt/tested_simt.cc, cuda/tested_cuda.cc).
#pragma once

#include <array>
#include <functional>
#include <string>

#include "kernels/backend.h"

namespace syntra {

Backend& FastBackend();

inline std::array<std::reference_wrapper<Backend>, 2> Backends() {
  return {ReferenceBackend(), FastBackend()};
}
inline bool IsReference(const Backend& backend) { return &backend == &ReferenceBackend(); }

// A kernel of the backend's own, over operands in host memory with kTestedGuard bytes before and
// behind each; nullopt: it has none.
inline constexpr size_t kTestedGuard = 16 * Buffer::kAlignment;
std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call);

// Calls `run` in several ways that must give the same bits: with other numbers of threads, or with
// the threads' turns in another order. Kernels are bound anew in each.
void InSeveralWays(const std::function<void(const std::string& way)>& run);

// What went wrong, besides wrong results, in the runs since the last call; empty: nothing.
std::string TakeComplaints();

}  // namespace syntra
