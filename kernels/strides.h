// SPDX-License-Identifier: Apache-2.0
// Loops over the same indices of several operands, each of which has its own strides: 0 where it is
// broadcast or summed, others where it is a slice or transposed. All backends share them.
#pragma once

#include <array>
#include <cstdint>

#include "base/host_device.h"
#include "core/shape.h"

namespace syntra {

// The number of elements from one index to the next, for each axis.
using Strides = std::array<int64_t, Shape::kMaxRank>;

// The strides of a dense tensor.
inline Strides DenseStrides(const Shape& shape) {
  Strides strides{};
  int64_t next = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = next;
    next *= shape[i];
  }
  return strides;
}

// Whether `shape` can be broadcast to `to` as in NumPy: the last axes are aligned, and axes that
// are missing or of extent 1 repeat.
inline bool Broadcasts(const Shape& shape, const Shape& to) {
  for (int i = 1; i <= shape.rank(); ++i) {
    if (i > to.rank() || (shape[-i] != 1 && shape[-i] != to[-i])) return false;
  }
  return true;
}

// The strides, for the axes of `to`, of a dense tensor of `shape` that is broadcast to it.
inline Strides BroadcastStrides(const Shape& shape, const Shape& to) {
  const Strides dense = DenseStrides(shape);
  const int missing = to.rank() - shape.rank();
  Strides strides{};
  for (int i = 0; i < shape.rank(); ++i) strides[missing + i] = shape[i] == 1 ? 0 : dense[i];
  return strides;
}

// The element of each operand at one index.
template <int kOperands>
struct Places {
  int64_t of[kOperands];
};

template <int kOperands>
struct StridedLoop {
  int rank = 1;
  int64_t extent[Shape::kMaxRank] = {1};
  int64_t stride[kOperands][Shape::kMaxRank] = {};

  // Axes that all operands walk through alike become one, so that the last axis is long.
  static StridedLoop Over(const Shape& shape, const std::array<Strides, kOperands>& strides) {
    StridedLoop loop;
    loop.rank = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      if (!loop.Merge(shape[i], i, strides)) loop.Append(shape[i], i, strides);
    }
    if (loop.rank == 0) loop.Append(1, 0, {});
    return loop;
  }

  void Append(int64_t count, int axis, const std::array<Strides, kOperands>& strides) {
    extent[rank] = count;
    for (int k = 0; k < kOperands; ++k) stride[k][rank] = strides[k][axis];
    ++rank;
  }

  SYNTRA_HOST_DEVICE int64_t inner() const { return extent[rank - 1]; }
  SYNTRA_HOST_DEVICE int64_t inner_stride(int k) const { return stride[k][rank - 1]; }
  // The product of all extents but the last.
  int64_t rows() const {
    int64_t rows = 1;
    for (int i = 0; i + 1 < rank; ++i) rows *= extent[i];
    return rows;
  }
  int64_t size() const { return rows() * inner(); }

  // Where row `row` begins.
  SYNTRA_HOST_DEVICE Places<kOperands> Row(int64_t row) const {
    Places<kOperands> places{};
    for (int i = rank - 2; i >= 0; --i) {
      // A division of 64 bits takes a GPU as long as loads do; the first axis needs none.
      const int64_t before = i == 0 ? 0 : row / extent[i];
      const int64_t index = row - before * extent[i];
      for (int k = 0; k < kOperands; ++k) places.of[k] += index * stride[k][i];
      row = before;
    }
    return places;
  }

  // Calls body(places) for every index, in order.
  template <typename Body>
  void ForEach(const Body& body) const {
    for (int64_t row = 0; row < rows(); ++row) {
      Places<kOperands> places = Row(row);
      for (int64_t i = 0; i < inner(); ++i) {
        body(places);
        for (int k = 0; k < kOperands; ++k) places.of[k] += inner_stride(k);
      }
    }
  }

 private:
  // Appends the axis to the one before if every operand goes on there without a gap.
  bool Merge(int64_t count, int axis, const std::array<Strides, kOperands>& strides) {
    if (rank == 0) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (stride[k][rank - 1] != strides[k][axis] * count) return false;
    }
    extent[rank - 1] *= count;
    for (int k = 0; k < kOperands; ++k) stride[k][rank - 1] = strides[k][axis];
    return true;
  }
};

// Goes through the rows of a loop one after the other, without divisions.
template <int kOperands>
class RowCursor {
 public:
  RowCursor(const StridedLoop<kOperands>& loop, int64_t row) : loop_(loop), places_(loop.Row(row)) {
    for (int i = loop.rank - 2; i >= 0; --i) {
      index_[i] = row % loop.extent[i];
      row /= loop.extent[i];
    }
  }

  const Places<kOperands>& places() const { return places_; }

  void Next() {
    for (int i = loop_.rank - 2; i >= 0; --i) {
      const bool wraps = ++index_[i] == loop_.extent[i];
      const int64_t steps = wraps ? 1 - loop_.extent[i] : 1;
      for (int k = 0; k < kOperands; ++k) places_.of[k] += steps * loop_.stride[k][i];
      if (!wraps) return;
      index_[i] = 0;
    }
  }

 private:
  const StridedLoop<kOperands>& loop_;
  Places<kOperands> places_;
  int64_t index_[Shape::kMaxRank] = {};
};

}  // namespace syntra
