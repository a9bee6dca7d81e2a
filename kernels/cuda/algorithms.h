// SPDX-License-Identifier: Apache-2.0
// Chooses among several ways to compute the same on this GPU by timing them, once
// (kernels/algorithm_choices.h). With SYNTRA_ALGORITHMS=first in the environment nothing is timed
// and the first way is taken; with "own" our own kernel where there is one, else the first way.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "kernels/bound_kernel.h"

namespace syntra::gpu {

// The user's file and this one remember the choices, so that all programs that read them compute
// the same bits.
void KeepAlgorithms(const Path& file);

// The index of the algorithm to take for a problem (AlgorithmChoices::Choose). Choices belong to
// the GPU, its driver and the library's version.
size_t ChooseAlgorithm(const std::string& problem, std::span<const std::string> algorithms,
                       const std::function<std::vector<double>()>& measure);

// A kernel, and what choices call it.
struct NamedKernel {
  std::string name;
  BoundKernel kernel;
};

// The kernel for a call that ChooseAlgorithm takes, timed on operands of its own; the first one
// where they do not fit into the GPU's memory. The last one is our own. A choice counts for kernels
// of these names: one whose speed may have changed gets another name.
BoundKernel FastestKernel(const OpCall& call, const std::string& problem,
                          std::vector<NamedKernel> kernels);

}  // namespace syntra::gpu
