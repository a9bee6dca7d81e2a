// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/algorithms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "kernels/algorithm_choices.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/kernel_trial.h"

namespace syntra::gpu {
namespace {

// The facts on which the choice of an algorithm depends, besides the problem.
const std::string& Platform() {
  static const std::string platform = [] {
    int gpu = 0, driver = 0;
    SYNTRA_CUDA(cudaGetDevice(&gpu));
    SYNTRA_CUDA(cudaDriverGetVersion(&driver));
    cudaDeviceProp properties;
    SYNTRA_CUDA(cudaGetDeviceProperties(&properties, gpu));
    return fmt::format("{}, sm_{}{}, {} processors, driver's CUDA {}, cuBLASLt {}", properties.name,
                       properties.major, properties.minor, properties.multiProcessorCount, driver,
                       Cublas().cublasLtGetVersion());
  }();
  return platform;
}

// Whether SYNTRA_ALGORITHMS is this.
bool Takes(std::string_view which) {
  const char* given = std::getenv("SYNTRA_ALGORITHMS");
  return given && given == which;
}

// Whether algorithms are timed and remembered.
bool ChoosesByTiming() { return !Takes("first") && !Takes("own"); }

AlgorithmChoices& Choices() {
  static AlgorithmChoices choices(
      ChoosesByTiming() ? UserAlgorithmsFile([](const char* name) { return std::getenv(name); })
                        : Path());
  return choices;
}

// Seconds of each kernel of a call; nothing where operands do not fit into memory.
std::vector<double> SecondsOf(const OpCall& call, std::span<const NamedKernel> kernels) {
  Trial trial;
  size_t workspace_bytes = 0;
  for (const NamedKernel& each : kernels) {
    workspace_bytes = std::max(workspace_bytes, each.kernel.workspace_bytes);
  }
  bool fits = true;
  const auto allocate = [&](std::span<const TensorType> types) {
    std::vector<void*> operands;
    for (const TensorType& type : types) {
      operands.push_back(type.present() ? trial.Allocate(type.bytes()) : nullptr);
      fits = fits && (operands.back() != nullptr || !type.present());
    }
    return operands;
  };
  const std::vector<void*> inputs = allocate(call.inputs), outputs = allocate(call.outputs);
  void* workspace = trial.Allocate(workspace_bytes);
  if (!fits || workspace == nullptr) return {};
  const KernelArguments arguments{inputs, outputs, static_cast<std::byte*>(workspace),
                                  trial.stream()};
  return trial.Seconds(kernels.size(), [&](size_t i) {
    kernels[i].kernel.run(arguments);
    return true;
  });
}

}  // namespace

void KeepAlgorithms(const Path& file) {
  if (ChoosesByTiming()) Choices().KeepIn(file);
}

size_t ChooseAlgorithm(const std::string& problem, std::span<const std::string> algorithms,
                       const std::function<std::vector<double>()>& measure) {
  return Choices().Choose(Platform() + ": " + problem, algorithms, measure);
}

BoundKernel FastestKernel(const OpCall& call, const std::string& problem,
                          std::vector<NamedKernel> kernels) {
  if (Takes("own")) return std::move(kernels.back().kernel);
  std::vector<std::string> names;
  for (const NamedKernel& each : kernels) names.push_back(each.name);
  const size_t chosen = ChooseAlgorithm(fmt::format("{} by {}", problem, fmt::join(names, " or ")),
                                        names, [&] { return SecondsOf(call, kernels); });
  return std::move(kernels[chosen].kernel);
}

}  // namespace syntra::gpu
