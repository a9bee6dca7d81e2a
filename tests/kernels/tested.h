// Whose kernels the sweep tests: each of its programs is linked with one implementation.
#pragma once

#include <functional>
#include <string>

#include "kernels/op.h"

namespace syntra {

std::string TestedBackend();
std::optional<BoundKernel> BindTested(const Op& op, const OpCall& call);

// Calls `run` in several ways that must give the same bits: with other numbers of threads, or with
// the threads' turns in another order. Kernels are bound anew in each.
void InSeveralWays(const std::function<void(const std::string& way)>& run);

// What went wrong, besides wrong results, in the runs since the last call; empty: nothing.
std::string TakeComplaints();

}  // namespace syntra
