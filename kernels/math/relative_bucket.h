// SPDX-License-Identifier: Apache-2.0
// T5's buckets of relative positions (Raffel et al. 2020, section 2.1). Each small distance has a
// bucket of its own. Larger distances share buckets whose borders grow geometrically up to
// max_distance; all distances beyond it are in the last bucket. Bidirectional tables use one half
// of the buckets for each direction. Causal tables put every key after the query into bucket 0.
//
// With n the distance, m the number of buckets of a direction and e = m / 2:
//   bucket(n) = n < e ? n : min(m - 1, e + floor(ln(n / e) / ln(max_distance / e) * (m - e))).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace syntra {

// A table from distances to buckets, computed once on the host. Distances such as 16, 32 and 64 are
// exactly on borders, where logarithms of different precision would disagree.
class T5Buckets {
 public:
  T5Buckets(int64_t buckets, bool bidirectional, int64_t max_distance)
      : direction_buckets_(bidirectional ? buckets / 2 : buckets), bidirectional_(bidirectional) {
    const int64_t exact = direction_buckets_ / 2;
    SYNTRA_CHECK(exact >= 1 && (!bidirectional || buckets % 2 == 0) && max_distance > exact,
                 "{} buckets up to distance {}", buckets, max_distance);
    const double shared = static_cast<double>(direction_buckets_ - exact);
    const double range = std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
    for (int64_t n = 0; n <= max_distance; ++n) {
      // 1e-10 is far above rounding errors, and far below the distance of any other integer n to a
      // border. So exact powers get the upper bucket.
      const double part =
          n < exact ? 0.0 : std::log(static_cast<double>(n) / static_cast<double>(exact)) / range;
      const int64_t bucket = n < exact ? n : exact + static_cast<int64_t>(part * shared + 1e-10);
      of_distance_.push_back(static_cast<int32_t>(std::min(bucket, direction_buckets_ - 1)));
    }
  }

  // The smallest distance from which on all distances of a direction share a bucket.
  int64_t Reach() const {
    return std::ranges::lower_bound(of_distance_, of_distance_.back()) - of_distance_.begin();
  }

  // The bucket of offset = key position - query position.
  int32_t operator()(int64_t offset) const {
    if (!bidirectional_) return OfDistance(offset < 0 ? -offset : 0);
    return OfDistance(std::abs(offset)) +
           (offset > 0 ? static_cast<int32_t>(direction_buckets_) : 0);
  }

 private:
  int32_t OfDistance(int64_t distance) const {
    const int64_t last = static_cast<int64_t>(of_distance_.size()) - 1;
    return of_distance_[distance < last ? distance : last];
  }

  int64_t direction_buckets_;
  bool bidirectional_;
  std::vector<int32_t> of_distance_;  // distances 0 .. max_distance
};

}  // namespace syntra
