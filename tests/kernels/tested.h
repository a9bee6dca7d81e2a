// SPDX-License-Identifier: Apache-2.0
// The backend under test. The tests of kernels, programs and models are linked with each of its
// implementations (tested_cpu.cc, simt/tested_simt.cc, cuda/tested_cuda.cc).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace syntra {

Backend& FastBackend();

inline std::array<std::reference_wrapper<Backend>, 2> Backends() {
  return {ReferenceBackend(), FastBackend()};
}
inline bool IsReference(const Backend& backend) { return &backend == &ReferenceBackend(); }

// The backend's kernel for the call, on operands in host memory with kTestedGuard bytes before and
// after each. nullopt if the backend has none.
inline constexpr size_t kTestedGuard = 16 * Buffer::kAlignment;
std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call);

// Whether it is a simulation, on which everything takes long.
bool IsSimulated();

// On a simulation every third of the cases, elsewhere all.
template <typename Cases>
std::vector<typename Cases::value_type> Sampled(const Cases& cases) {
  std::vector<typename Cases::value_type> sample;
  size_t number = 0;
  for (const auto& each : cases) {
    if (number++ % 3 == 0 || !IsSimulated()) sample.push_back(each);
  }
  return sample;
}

// Whether a product has the same bits whatever the op applies to its result. A library that chooses
// an algorithm for each may sum in another order.
bool SumsProductsAlike();

// Calls `run` in several ways that must give bitwise equal results: with different numbers of
// threads, or with the threads scheduled in different orders. `run` binds its kernels anew each
// time.
void InSeveralWays(const std::function<void(const std::string& way)>& run);

// The errors, other than wrong results, of the runs since the last call; empty if there were none.
std::string TakeComplaints();

}  // namespace syntra
