// SPDX-License-Identifier: Apache-2.0
#include "data/byte_trie.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/error.h"

namespace syntra {

// Places nodes level by level, so that those near the root, which every text passes, lie together.
class ByteTrie::Builder {
 public:
  explicit Builder(std::vector<Unit>* units) : units_(*units) { AddBlock(); }

  uint32_t Place(std::span<const Entry> entries) {
    std::vector<Range> level{{entries, kRoot}}, next;
    for (size_t depth = 0; !level.empty(); ++depth, level.swap(next), next.clear()) {
      for (const Range& node : level) PlaceChildren(node, depth, &next);
    }
    return root_;
  }

 private:
  static constexpr uint32_t kRoot = 0;       // of the first block, where no node lies
  static constexpr size_t kOpenBlocks = 16;  // where room is sought
  struct Range {
    std::span<const Entry> entries;  // those below the node
    uint32_t node;
  };

  void PlaceChildren(const Range& parent, size_t depth, std::vector<Range>* next) {
    std::span<const Entry> rest = parent.entries;
    if (rest.front().first.size() == depth) rest = rest.subspan(1);  // the parent's own key
    if (rest.empty()) return;
    std::vector<Range> children;
    labels_.clear();
    while (!rest.empty()) {
      const char byte = rest.front().first[depth];
      const auto end = std::ranges::find_if(
          rest, [&](const Entry& entry) { return entry.first[depth] != byte; });
      const auto count = static_cast<size_t>(end - rest.begin());
      labels_.push_back(static_cast<uint8_t>(byte));
      children.push_back({rest.first(count), 0});
      rest = rest.subspan(count);
    }
    const uint32_t place = FindPlace();
    (parent.node == kRoot ? root_ : units_[parent.node].children) = place;
    used_places_[place] = true;
    for (size_t i = 0; i < labels_.size(); ++i) {
      children[i].node = place ^ labels_[i];
      const auto& [key, value] = children[i].entries.front();
      const uint32_t ends = key.size() == depth + 1 ? static_cast<uint32_t>(value) + 1 : 0;
      units_[children[i].node].value_and_label = ends << 9 | labels_[i];
      free_[children[i].node / 64] &= ~(uint64_t{1} << children[i].node % 64);
    }
    next->insert(next->end(), children.begin(), children.end());
  }

  bool IsFree(uint32_t unit) const { return free_[unit / 64] >> unit % 64 & 1; }

  bool Fits(uint32_t place) const {
    return !used_places_[place] &&
           std::ranges::all_of(labels_, [&](uint8_t label) { return IsFree(place ^ label); });
  }

  // A `children` at which all of labels_ are free.
  uint32_t FindPlace() {
    const size_t blocks = units_.size() / kBlock;
    const size_t first = blocks > kOpenBlocks ? blocks - kOpenBlocks : 1;
    for (size_t word = first * kBlock / 64; word < free_.size(); ++word) {
      for (uint64_t bits = free_[word]; bits != 0; bits &= bits - 1) {
        const auto unit = static_cast<uint32_t>(64 * word + std::countr_zero(bits));
        if (Fits(unit ^ labels_[0])) return unit ^ labels_[0];
      }
    }
    const auto place = static_cast<uint32_t>(units_.size());
    AddBlock();
    return place;
  }

  void AddBlock() {
    units_.resize(units_.size() + kBlock);
    used_places_.resize(units_.size());
    free_.resize(units_.size() / 64, ~uint64_t{0});
  }

  std::vector<Unit>& units_;
  std::vector<bool> used_places_;
  std::vector<uint64_t> free_;  // a bit for each unit
  std::vector<uint8_t> labels_;
  uint32_t root_ = 0;
};

ByteTrie::ByteTrie(std::vector<Entry> entries) {
  for (const auto& [key, value] : entries) {
    SYNTRA_CHECK(!key.empty() && value >= 0 && value <= kMostValue, "value {}", value);
  }
  std::ranges::reverse(entries);
  std::ranges::stable_sort(entries, {}, &Entry::first);
  const auto same = [](const Entry& a, const Entry& b) { return a.first == b.first; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  if (!entries.empty()) root_ = Builder(&units_).Place(entries);
}

}  // namespace syntra
