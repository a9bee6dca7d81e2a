// SPDX-License-Identifier: Apache-2.0
#include "program/occupancy.h"

#include <algorithm>
#include <bit>

namespace syntra {

void Ranges::Add(size_t begin, size_t end) {
  const auto first = std::ranges::lower_bound(ranges_, begin, {}, &Range::end);
  const auto after = std::ranges::upper_bound(first, ranges_.end(), end, {}, &Range::begin);
  if (first == after) {
    ranges_.insert(first, {begin, end});
    return;
  }
  *first = {std::min(begin, first->begin), std::max(end, (after - 1)->end)};
  ranges_.erase(first + 1, after);
}

size_t Ranges::EndOfFirstIn(size_t begin, size_t end) const {
  const auto found = std::ranges::upper_bound(ranges_, begin, {}, &Range::end);
  return found != ranges_.end() && found->begin < end ? found->end : begin;
}

Occupancy::Occupancy(size_t instructions)
    : leaves_(std::bit_ceil(std::max<size_t>(1, instructions))), nodes_(2 * leaves_) {}

template <typename Inside, typename Around>
void Occupancy::Walk(size_t first, size_t last, const Inside& inside, const Around& around) {
  const auto walk = [&](const auto& self, size_t node, size_t begin, size_t size) -> void {
    if (last < begin || begin + size <= first) return;
    if (first <= begin && begin + size - 1 <= last) return inside(nodes_[node]);
    around(nodes_[node]);
    self(self, 2 * node, begin, size / 2);
    self(self, 2 * node + 1, begin + size / 2, size / 2);
  };
  walk(walk, 1, 0, leaves_);
}

void Occupancy::Take(size_t first, size_t last, size_t begin, size_t end) {
  if (begin == end) return;
  Walk(
      first, last,
      [&](Node& node) {
        node.always.Add(begin, end);
        node.sometimes.Add(begin, end);
      },
      [&](Node& node) { node.sometimes.Add(begin, end); });
}

size_t Occupancy::LowestFree(size_t first, size_t last, size_t bytes) {
  relevant_.clear();
  Walk(
      first, last, [&](const Node& node) { relevant_.push_back(&node.sometimes); },
      [&](const Node& node) { relevant_.push_back(&node.always); });
  size_t offset = 0, before;
  do {
    before = offset;
    for (const Ranges* ranges : relevant_) offset = ranges->EndOfFirstIn(offset, offset + bytes);
  } while (offset != before);
  return offset;
}

}  // namespace syntra
