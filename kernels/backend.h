// SPDX-License-Identifier: Apache-2.0
// What programs run on: a device, how it holds their values, and its kernels.
#pragma once

#include <optional>
#include <string_view>

#include "core/device.h"
#include "kernels/op.h"

namespace syntra {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "reference", "cpu", "cuda"
  virtual Device& device() = 0;

  // The type in which a program's values of `type` are held.
  virtual TensorType Held(const TensorType& type) const { return type; }

  // FLOP/s that products of `type`, kF32 or kBF16, can reach; NaN where it is not known.
  virtual double PeakFlops(DType type) = 0;

  // A kernel for a call of these types, which are held ones; it honours call.accumulate. nullopt:
  // there is none, and nothing else serves.
  virtual std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) = 0;

  // A kernel for several calls of one op, in any order or at once; its operands are those of the
  // first call, then those of the second, ... nullopt: each call has a kernel of its own.
  virtual std::optional<BoundKernel> BindMultiTensor(const Op&, std::span<const OpCall>) {
    return std::nullopt;
  }
};

// Computes everything in double precision: floating-point values are held as f64.
Backend& ReferenceBackend();

// Fast kernels on the host; where an op has none, the reference runs, which is logged once.
Backend& CpuBackend();

}  // namespace syntra
