// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/backend.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/gemm.h"

namespace syntra {
namespace {

// Peak rates of dense products from NVIDIA's data sheets, in 1e12 FLOP/s: bf16 on tensor cores with
// f32 sums, and IEEE f32, which does not use tensor cores. The first name that the device's name
// contains is used.
struct Peak {
  std::string_view name;
  double bf16, f32;
};
constexpr Peak kPeaks[] = {{"B200", 2250, 75},       {"GH200", 989.4, 67},  {"H200", 989.4, 67},
                           {"H100 PCIe", 756, 51},   {"H100 NVL", 835, 60}, {"H100", 989.4, 67},
                           {"A100", 312, 19.5},      {"A30", 165, 10.3},    {"A40", 149.7, 37.4},
                           {"A10", 125, 31.2},       {"L40S", 362, 91.6},   {"L4", 121, 30.3},
                           {"RTX 4090", 165.2, 82.6}};

}  // namespace

void RequireCapability(std::string_view gpu, int major, int minor) {
  constexpr int kOldest = 8;  // bf16 on tensor cores, cp.async
  if (major >= kOldest) return;
  Fail(ExitCode::kResources,
       "{} has compute capability {}.{}; the kernels need {}.0 or newer: take another GPU, or set "
       "train.device: CPU",
       gpu, major, minor, kOldest);
}

double CudaBackend::PeakFlops(DType type) {
  const auto* peak = std::ranges::find_if(kPeaks, [&](const Peak& known) {
    return device_->name().find(known.name) != std::string_view::npos;
  });
  if (peak == std::end(kPeaks)) return std::numeric_limits<double>::quiet_NaN();
  return 1e12 * (type == DType::kBF16 ? peak->bf16 : peak->f32);
}

bool CudaBackend::RoundsParameters(const Op& op, const OpCall& call) const {
  const auto is_bf16 = [](const TensorType& type) { return type.dtype == DType::kBF16; };
  return IsCudaProduct(op) &&
         (std::ranges::any_of(call.inputs, is_bf16) || std::ranges::any_of(call.outputs, is_bf16));
}

void CudaBackend::KeepChoices(const Path& run_directory) {
  gpu::KeepAlgorithms(run_directory / "algorithms.json");
}

std::optional<BoundKernel> CudaBackend::Bind(const Op& op, const OpCall& call) {
  std::optional<BoundKernel> kernel = BindCudaKernel(op, call);
  const bool adds = std::ranges::find(call.accumulate, true) != call.accumulate.end();
  if (kernel && adds && !kernel->accumulates) return std::nullopt;
  return kernel;
}

}  // namespace syntra
