// SPDX-License-Identifier: Apache-2.0
// Tensor extents. Dimensions are named by letters throughout, as in the papers:
//   B examples, T target or query positions, S source or key positions, H heads, K head size,
//   D model width, F feed-forward width, N positions of a learned table, V vocabulary, R rank.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace syntra {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  // Negative indices count from the end.
  int64_t operator[](int i) const { return dims_[i < 0 ? i + rank_ : i]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // This shape without one axis, or with another extent of it. Negative indices count from the end.
  Shape Without(int64_t axis) const;
  Shape With(int64_t axis, int64_t extent) const;

  // Product of all extents; 1 for a scalar. Above 2^56 the constructor throws Error(kConfig).
  int64_t size() const;
  // Product of all extents but the last: how many rows a row-wise kernel visits.
  int64_t rows() const { return rank_ == 0 ? 1 : size() / (*this)[-1]; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string ToString(const Shape& shape);  // "[4, 512, 768]"

}  // namespace syntra
