// SPDX-License-Identifier: Apache-2.0
// The sums that a call of depthwise_conv or its gradient stands for
// (kernels/ops/depthwise_conv.cc).
#pragma once

#include <algorithm>

#include "base/host_device.h"
#include "kernels/fourier_plan.h"
#include "kernels/op_call.h"

namespace syntra {

struct DepthwiseCall {
  static constexpr int64_t kMostTaps = 256;  // of filters that cannot be long
  // With more taps than this, a Fourier transform takes less time (measured on AVX-512, with as
  // many taps as positions).
  static constexpr int64_t kFewTaps = 64;

  int64_t batch = 0, length = 0, columns = 0, groups = 1, taps = 0;
  int64_t left = 0;      // positions before its own that a position reads
  bool dynamic = false;  // each position has weights of its own
  // More than kFewTaps taps, and each column has a filter of its own for all positions.
  bool is_long = false;

  // The sizes of a call with inputs x, weights, segments.
  static DepthwiseCall Of(const OpCall& call) {
    const Shape &x = call.inputs[0].shape, &weights = call.inputs[1].shape;
    DepthwiseCall result;
    result.batch = x[0];
    result.length = x[1];
    result.columns = x[2];
    result.groups = call.attributes.Int("groups");
    result.left = call.attributes.Int("left");
    result.dynamic = weights.rank() == 3;
    result.taps = weights[-1] / (result.dynamic ? result.groups : 1);
    const bool of_columns = !result.dynamic && result.groups == result.columns;
    result.is_long = of_columns && !call.inputs[2].present() && result.taps > kFewTaps;
    return result;
  }

  // How far back, and ahead, a tap can reach without leaving the sequence.
  int64_t back() const { return std::min(left, length - 1); }
  int64_t ahead() const { return std::min(taps - 1 - left, length - 1); }
  // The length of a circular convolution in which no position meets a tap twice.
  int64_t transform_length() const { return FastFourierLength(length + std::max(back(), ahead())); }

  SYNTRA_HOST_DEVICE int64_t rows() const { return batch * length; }
  SYNTRA_HOST_DEVICE int64_t group_columns() const { return columns / groups; }
  SYNTRA_HOST_DEVICE int64_t group_of(int64_t column) const { return column / group_columns(); }
  // Where the weights of a row (an example's position) begin.
  SYNTRA_HOST_DEVICE int64_t weights_of(int64_t row) const {
    return dynamic ? row * groups * taps : 0;
  }
  // Whether `row` reads the row `offset` after it: of the same example and segment, not padding.
  SYNTRA_HOST_DEVICE bool Reads(const int32_t* segments, int64_t row, int64_t offset) const {
    const int64_t position = row % length + offset;
    if (position < 0 || position >= length) return false;
    return segments == nullptr || (segments[row] != 0 && segments[row] == segments[row + offset]);
  }
};

}  // namespace syntra
