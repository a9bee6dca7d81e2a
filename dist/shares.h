// SPDX-License-Identifier: Apache-2.0
// How ranks divide a vector among themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace syntra {

// Rank r's share is the elements [begin(r), end(r)). The shares lie one after the other and cover
// the vector; they may differ in size and be empty.
class Shares {
 public:
  // Where each rank's share ends.
  explicit Shares(std::vector<int64_t> ends) : ends_(std::move(ends)) {
    SYNTRA_CHECK(!ends_.empty() && ends_.front() >= 0 && std::ranges::is_sorted(ends_),
                 "the ends of shares fall");
  }
  // Shares of equal size, a multiple of `grain`; the last share that is not empty may be smaller.
  static Shares Even(int64_t elements, int ranks, int64_t grain = 1) {
    const int64_t share = (elements + ranks * grain - 1) / (ranks * grain) * grain;
    std::vector<int64_t> ends;
    for (int rank = 1; rank <= ranks; ++rank) ends.push_back(std::min(rank * share, elements));
    return Shares(std::move(ends));
  }

  int ranks() const { return static_cast<int>(ends_.size()); }
  int64_t begin(int rank) const { return rank == 0 ? 0 : ends_[rank - 1]; }
  int64_t end(int rank) const { return ends_[rank]; }
  int64_t size(int rank) const { return end(rank) - begin(rank); }
  int64_t elements() const { return ends_.back(); }  // of the vector
  int64_t largest() const {
    int64_t most = 0;
    for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, size(rank));
    return most;
  }
  bool are_equal() const { return largest() * ranks() == elements(); }

  // The shares of the same ranks in the elements [first, last) alone.
  Shares Within(int64_t first, int64_t last) const {
    return Each([=](int64_t end) { return std::clamp(end, first, last) - first; });
  }
  // These shares, counted in smaller units: each element has `units` of them.
  Shares Times(int64_t units) const {
    return Each([=](int64_t end) { return end * units; });
  }

 private:
  template <typename Change>
  Shares Each(const Change& change) const {
    std::vector<int64_t> ends;
    for (const int64_t end : ends_) ends.push_back(change(end));
    return Shares(std::move(ends));
  }

  std::vector<int64_t> ends_;
};

}  // namespace syntra
