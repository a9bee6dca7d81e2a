// SPDX-License-Identifier: Apache-2.0
// A map from byte strings to numbers that finds all keys that a text starts with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace syntra {

class ByteTrie {
 public:
  // `text` must not be empty, `value` not negative.
  void Add(std::string_view text, int32_t value);

  bool empty() const { return values_.size() == 1; }

  // Calls visit(length, value) for each key that `text` starts with, shortest first.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, const Visit& visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) return;
      if (values_[node] >= 0) visit(i + 1, values_[node]);
    }
  }

 private:
  static size_t Mix(uint64_t key) {
    key *= 0x9e3779b97f4a7c15ull;
    return key ^ (key >> 29);
  }
  // The child of `node` for `byte`; 0 if there is none.
  uint32_t Child(uint32_t node, uint8_t byte) const {
    const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
    const size_t mask = keys_.size() - 1;
    for (size_t slot = Mix(key) & mask; keys_[slot] != 0; slot = (slot + 1) & mask) {
      if (keys_[slot] == key) return children_[slot];
    }
    return 0;
  }
  void Insert(uint64_t key, uint32_t child);
  void Grow();

  // Open addressing from (node << 8 | byte) + 1 to the child; 0 is empty.
  std::vector<uint64_t> keys_ = std::vector<uint64_t>(1024);
  std::vector<uint32_t> children_ = std::vector<uint32_t>(1024);
  std::vector<int32_t> values_{-1};  // the value of each node; -1: no key ends there
};

}  // namespace syntra
