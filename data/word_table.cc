// SPDX-License-Identifier: Apache-2.0
#include "data/word_table.h"

#include <utility>

namespace syntra {
namespace {

constexpr size_t kGrowth = 4;  // from 32 KiB to the 8 MiB of a large corpus in four steps

}  // namespace

WordTable::WordTable(const WordTable& other)
    : memory_(other.memory_.size(), kPurpose), size_(other.size_) {
  std::memcpy(memory_.data(), other.memory_.data(), memory_.size());
}

const Word& WordTable::Add(const Word& word) {
  if (4 * (size_ + 1) > 3 * words().size()) {
    const Buffer old = std::exchange(memory_, Buffer(kGrowth * memory_.size(), kPurpose));
    for (const Word& each :
         std::span(reinterpret_cast<Word*>(old.data()), old.size() / sizeof(Word))) {
      if (!each.key.empty()) Slot(each.key, each.key.Hash()) = each;
    }
  }
  ++size_;
  return Slot(word.key, word.key.Hash()) = word;
}

}  // namespace syntra
