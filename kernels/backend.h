// SPDX-License-Identifier: Apache-2.0
// A backend runs programs: a device, the types that it stores values in, and its kernels.
#pragma once

#include <optional>
#include <string_view>

#include "base/file.h"
#include "core/device.h"
#include "kernels/bound_kernel.h"

namespace syntra {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "reference", "cpu", "cuda"
  virtual Device& device() = 0;

  // The type in which this backend stores a program's values of `type`.
  virtual TensorType Stored(const TensorType& type) const { return type; }

  // The peak FLOP/s of matrix products of `type`, kF32 or kBF16; NaN if unknown.
  virtual double PeakFlops(DType type) = 0;
  // Whether the processor multiplies bf16 by instructions of its own, several times as fast as f32.
  virtual bool MultipliesBFloat16() const { return false; }

  // To be called before the kernels of a run are bound. Choices between kernels that are made by
  // timing decide the bits of results, so the run directory records them, and recorded choices are
  // used again.
  virtual void KeepChoices(const Path& /*run_directory*/) {}

  // Whether programs with these activations should keep bf16 copies of their parameters, for
  // kernels that would otherwise begin by rounding them.
  virtual bool KeepsRounded(DType /*activations*/) const { return false; }
  // Whether this call's kernel gives the same result from bf16 copies of its f32 inputs.
  virtual bool RoundsParameters(const Op&, const OpCall&) const { return false; }

  // A kernel for the call, whose types are those that Stored returns. It honours call.accumulate.
  // nullopt if the backend has none. Where the backend KeepsRounded, an update may have one more
  // output than its op says: output 0 in bf16.
  virtual std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) = 0;

  // Returns one kernel for several calls of one op, which may run in any order or in parallel. Its
  // operands are those of the first call, then those of the second, and so on. nullopt: each call
  // must be bound on its own.
  virtual std::optional<BoundKernel> BindMultiTensor(const Op&, std::span<const OpCall>) {
    return std::nullopt;
  }
};

// Computes everything in double precision: floating-point values are stored as f64.
Backend& ReferenceBackend();

// Fast kernels on the host. An op without one runs on the reference, which is logged once.
Backend& CpuBackend();

}  // namespace syntra
