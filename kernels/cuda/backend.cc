// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/backend.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "kernels/cuda.h"
#include "kernels/cuda/algorithms.h"

namespace syntra {
namespace {

// Peak rates of dense products from NVIDIA's data sheets, in 1e12 FLOP/s: bf16 on tensor cores with
// f32 sums, and IEEE f32, which does not use tensor cores. The first name that the device's name
// contains is used.
struct Peak {
  std::string_view name;
  double bf16, f32;
};
constexpr Peak kPeaks[] = {
    {"GB200", 2500, 80},     {"B200", 2250, 75},       {"GH200", 989.4, 67},
    {"H200 NVL", 835.5, 60}, {"H200", 989.4, 67},      {"H100 PCIe", 756, 51},
    {"H100 NVL", 835.5, 60}, {"H100", 989.4, 67},      {"A100", 312, 19.5},
    {"A30", 165, 10.3},      {"A40", 149.7, 37.4},     {"A10G", 70, 35},
    {"A10", 125, 31.2},      {"L40S", 362, 91.6},      {"L40", 181, 90.5},
    {"L4", 121, 30.3},       {"RTX 4090", 165.2, 82.6}};

// Whether the device's name contains `known` as words: an L40 is no L4, an RTX A4000 no A40.
bool Names(std::string_view gpu, std::string_view known) {
  const auto ends_a_word = [&](size_t at) {
    return at >= gpu.size() || !std::isalnum(static_cast<unsigned char>(gpu[at]));
  };
  for (size_t at = gpu.find(known); at != gpu.npos; at = gpu.find(known, at + 1)) {
    if ((at == 0 || ends_a_word(at - 1)) && ends_a_word(at + known.size())) return true;
  }
  return false;
}

}  // namespace

void RequireCapability(std::string_view gpu, int major, int minor) {
  constexpr int kOldest = 8;  // bf16 on tensor cores, cp.async
  if (major >= kOldest) return;
  Fail(ExitCode::kResources,
       "{} has compute capability {}.{}; the kernels need {}.0 or newer: take another GPU, or set "
       "train.device: CPU",
       gpu, major, minor, kOldest);
}

void RequireDriver(std::string_view gpu, int version) {
  constexpr int kOldest = 12010;  // kernel parameters of more than 4 KB (multi_tensor.h)
  if (version >= kOldest) return;
  Fail(ExitCode::kResources,
       "the NVIDIA driver of {} supports CUDA {}; the kernels need CUDA 12.1, which is driver 530 "
       "or newer: update the driver, or set train.device: CPU",
       gpu, CudaVersionText(version));
}

double PeakFlopsOf(std::string_view gpu, DType type) {
  const auto* peak =
      std::ranges::find_if(kPeaks, [&](const Peak& known) { return Names(gpu, known.name); });
  if (peak == std::end(kPeaks)) return std::numeric_limits<double>::quiet_NaN();
  return 1e12 * (type == DType::kBF16 ? peak->bf16 : peak->f32);
}

double CudaBackend::PeakFlops(DType type) { return PeakFlopsOf(device_->name(), type); }

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
