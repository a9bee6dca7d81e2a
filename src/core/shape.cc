// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace syntra {
namespace {

// No machine holds as many, and the bytes of any element type can still be counted.
constexpr int64_t kMostElements = int64_t{1} << 56;

}  // namespace

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  SYNTRA_CHECK(dims.size() <= kMaxRank, "rank {}", dims.size());
  int64_t size = 1;
  for (int i = 0; i < rank_; ++i) {
    SYNTRA_CHECK(dims[i] > 0, "extent {} of dimension {} is not usable", dims[i], i);
    if (__builtin_mul_overflow(size, dims[i], &size) || size > kMostElements) {
      Fail(ExitCode::kConfig, "a tensor of [{}] has more than {} elements; make the model smaller",
           fmt::join(dims, ", "), kMostElements);
    }
    dims_[i] = dims[i];
  }
}

Shape Shape::Without(int64_t axis) const {
  std::vector<int64_t> others(dims().begin(), dims().end());
  others.erase((axis < 0 ? others.end() : others.begin()) + axis);
  return Shape(others);
}

Shape Shape::With(int64_t axis, int64_t extent) const {
  std::vector<int64_t> all(dims().begin(), dims().end());
  *((axis < 0 ? all.end() : all.begin()) + axis) = extent;
  return Shape(all);
}

int64_t Shape::size() const {
  int64_t size = 1;
  for (const int64_t extent : dims()) size *= extent;
  return size;
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

std::string ToString(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

}  // namespace syntra
