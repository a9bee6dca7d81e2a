// SPDX-License-Identifier: Apache-2.0
// A bound call of fourier_transform.
#pragma once

#include <algorithm>
#include <memory>

#include "core/thread.h"
#include "kernels/cpu/fourier.h"
#include "kernels/operands.h"

namespace syntra {

struct FourierCall {
  explicit FourierCall(const OpCall& call)
      : batch(call.inputs[0].shape[0]),
        length(call.inputs[0].shape[1]),
        width(call.inputs[0].shape[2]),
        period(call.attributes.Int("period")),
        factor(static_cast<float>(call.attributes.Number("factor"))),
        dtype(call.inputs[0].dtype),
        accumulate(Accumulates(call, 0)),
        of_positions(std::make_shared<const FourierTables>(period)),
        of_columns(std::make_shared<const FourierTables>(width)) {}

  // Rows of the transform over positions that count: the others are their conjugates.
  int64_t rows() const { return std::min(length, period / 2 + 1); }

  int64_t batch, length, width, period;
  int64_t threads = ThreadCount();  // for which it has memory
  float factor;
  DType dtype;
  bool accumulate;
  std::shared_ptr<const FourierTables> of_positions, of_columns;
};

}  // namespace syntra
