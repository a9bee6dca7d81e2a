// SPDX-License-Identifier: Apache-2.0
// A map from byte strings to numbers that finds all keys that a text starts with: a trie in a
// double array (Aoe 1989), in which a step is one load.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace syntra {

class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, int32_t>;  // a key that is not empty, its value
  static constexpr int32_t kMostValue = (1 << 23) - 2;
  static constexpr int32_t kNoKey = -1;

  // Values are in [0, kMostValue]. If a key comes twice, the last counts.
  explicit ByteTrie(std::vector<Entry> entries = {});

  bool empty() const { return root_ == 0; }

  // Calls visit(length, value) for each key that `text` starts with, shortest first.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, const Visit& visit) const {
    VisitNodes(text, [&](size_t length, int32_t value) {
      if (value != kNoKey) visit(length, value);
    });
  }

  // Calls visit(length, value) for each beginning of `text` that a key starts with, shortest first;
  // the value is kNoKey where the beginning itself is no key.
  template <typename Visit>
  void VisitNodes(std::string_view text, const Visit& visit) const {
    uint32_t children = root_;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const Unit unit = units_[children ^ byte];
      if (unit.label() != byte) return;
      visit(i + 1, unit.value());
      children = unit.children;
    }
  }

 private:
  static constexpr uint32_t kBlock = 256, kNoLabel = 256;

  // A node is the unit at its parent's `children` xor its label. No two nodes have the same
  // `children`, so a label that fits is a child of the node at hand. The first block stays empty:
  // the children of nodes that have none.
  struct Unit {
    uint32_t children = 0;
    uint32_t value_and_label = kNoLabel;  // 23 bits: the value plus 1, 0 for kNoKey; 9 bits

    uint32_t label() const { return value_and_label & 511; }
    int32_t value() const { return static_cast<int32_t>(value_and_label >> 9) - 1; }
  };
  class Builder;

  std::vector<Unit> units_ = std::vector<Unit>(kBlock);
  uint32_t root_ = 0;  // the root's `children`
};

}  // namespace syntra
