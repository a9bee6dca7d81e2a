// SPDX-License-Identifier: Apache-2.0
// The backend of CUDA kernels on one GPU.
#pragma once

#include <memory>

#include "kernels/cuda.h"

namespace syntra {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string_view name() const override { return "cuda"; }
  Device& device() override { return *device_; }
  double PeakFlops(DType type) override;
  bool MultipliesBFloat16() const override { return true; }
  void KeepChoices(const Path& run_directory) override;
  bool KeepsRounded(DType activations) const override { return GpusKeepRounded(activations); }
  bool RoundsParameters(const Op& op, const OpCall& call) const override;
  std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) override;
  std::optional<BoundKernel> BindMultiTensor(const Op& op, std::span<const OpCall> calls) override {
    return BindCudaMultiTensor(op, calls);
  }

 private:
  std::unique_ptr<Device> device_;
};

// Whether cuda.def says that the op's kernel is made of products.
bool IsCudaProduct(const Op& op);

// Backend::PeakFlops of a GPU whose name is, or contains, the product's.
double PeakFlopsOf(std::string_view gpu, DType type);

// Throw Error(kResources) if the kernels cannot run on a GPU of this compute capability, or with a
// driver that supports this version of CUDA (1000 major + 10 minor).
void RequireCapability(std::string_view gpu, int major, int minor);
void RequireDriver(std::string_view gpu, int version);

}  // namespace syntra
