// SPDX-License-Identifier: Apache-2.0
#include "data/byte_trie.h"

#include "base/error.h"

namespace syntra {

void ByteTrie::Insert(uint64_t key, uint32_t child) {
  const size_t mask = keys_.size() - 1;
  size_t slot = Mix(key) & mask;
  while (keys_[slot] != 0) slot = (slot + 1) & mask;
  keys_[slot] = key;
  children_[slot] = child;
}

void ByteTrie::Grow() {
  std::vector<uint64_t> keys(2 * keys_.size());
  std::vector<uint32_t> children(keys.size());
  keys.swap(keys_);
  children.swap(children_);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] != 0) Insert(keys[i], children[i]);
  }
}

void ByteTrie::Add(std::string_view text, int32_t value) {
  SYNTRA_CHECK(!text.empty() && value >= 0);
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t child = Child(node, byte);
    if (child == 0) {
      if (2 * values_.size() >= keys_.size()) Grow();
      child = static_cast<uint32_t>(values_.size());
      values_.push_back(-1);
      Insert((uint64_t{node} << 8 | byte) + 1, child);
    }
    node = child;
  }
  values_[node] = value;
}

}  // namespace syntra
