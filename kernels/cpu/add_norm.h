// SPDX-License-Identifier: Apache-2.0
// The dimensions and attributes of one call of add_norm or its gradient.
#pragma once

#include <array>

#include "core/dtype.h"
#include "kernels/cpu/shared_noise.h"
#include "kernels/math/random_mask.h"

namespace syntra {

// Operands by number (kernels/ops/add_norm.cc).
namespace add_norm {
enum InputNumber { kX, kY, kScale, kKeys };
enum OutputNumber { kSum, kNormed, kInverseRms };
}  // namespace add_norm
namespace add_norm_grad {
enum InputNumber { kSum, kScale, kInverseRms, kDSum, kDNormed, kKeys };
enum OutputNumber { kDX, kDY, kDScale, kOutputs };
}  // namespace add_norm_grad

struct AddNormCall {
  DType dtype;
  int64_t rows, width;  // B*T, D
  TensorMask mask;
  float epsilon = 0.0f;
  std::array<bool, add_norm_grad::kOutputs> accumulate{};
  size_t noise_offset = 0;  // where the shared noise begins in the workspace
};

}  // namespace syntra
