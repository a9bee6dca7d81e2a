// SPDX-License-Identifier: Apache-2.0
// Short words with their ids: a hash table with open addressing, a line of the processor's cache
// for each word, in huge pages where the system has some.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/buffer.h"

namespace syntra {

// The bytes of a word, zeros after them, and in the last byte their number and whether a space
// precedes the word. Empty: no word, or a longer one.
struct WordKey {
  static constexpr size_t kMostBytes = 15;

  uint64_t low = 0, high = 0;

  // The key of the word of `size` bytes, at least one, at `begin` of `text`.
  static WordKey Of(std::string_view text, size_t begin, size_t size, bool after_space) {
    if (size > kMostBytes) return {};
    WordKey key;
    if (text.size() - begin >= sizeof key) {
      std::memcpy(&key, text.data() + begin, sizeof key);
    } else {
      std::memcpy(&key, text.data() + begin, size);
    }
    // Without branches, since none could be foretold.
    const size_t in_low = std::min<size_t>(size, 8);
    key.low &= kFirstBytes[in_low];
    key.high &= kFirstBytes[size - in_low];
    key.high |= (size << 1 | after_space) << 56;
    return key;
  }
  bool empty() const { return high == 0; }
  uint64_t Hash() const {
    const uint64_t mixed = (low ^ std::rotl(high * 0xc2b2ae3d27d4eb4f, 31)) * 0x9e3779b97f4a7c15;
    return mixed ^ mixed >> 32;
  }
  friend bool operator==(const WordKey&, const WordKey&) = default;

 private:
  // Masks of the first 0 to 8 bytes.
  static constexpr std::array<uint64_t, 9> kFirstBytes = [] {
    std::array<uint64_t, 9> masks{};
    for (size_t i = 1; i < masks.size(); ++i) masks[i] = masks[i - 1] << 8 | 0xff;
    return masks;
  }();
};

struct alignas(64) Word {
  static constexpr size_t kMostIds = 8;

  WordKey key;
  std::array<int32_t, kMostIds> ids{};
  uint32_t id_count = 0;
  float largest_sum = 0;  // largest magnitude of the sum before the word at which these are its ids
  float magnitude = 0;    // of the word's own score
};
static_assert(sizeof(Word) == 64);

class WordTable {
 public:
  WordTable() : memory_(512 * sizeof(Word), kPurpose) {}
  WordTable(const WordTable& other);
  WordTable& operator=(const WordTable&) = delete;

  size_t size() const { return size_; }
  // Brings a word nearer that is looked up soon.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&words()[hash & mask()]); }
  // Null if the word is not there. Valid until the next Add. `hash` is that of `key`.
  const Word* Find(const WordKey& key, uint64_t hash) const {
    const Word& word = Slot(key, hash);
    return word.key.empty() ? nullptr : &word;
  }
  // Adds a word that is not there.
  const Word& Add(const Word& word);

 private:
  static constexpr const char* kPurpose = "the cache of words";

  std::span<Word> words() const {
    return {reinterpret_cast<Word*>(memory_.data()), memory_.size() / sizeof(Word)};
  }
  size_t mask() const { return memory_.size() / sizeof(Word) - 1; }
  // Where the word is or would be.
  Word& Slot(const WordKey& key, uint64_t hash) const {
    size_t slot = hash & mask();
    while (!words()[slot].key.empty() && words()[slot].key != key) slot = (slot + 1) & mask();
    return words()[slot];
  }

  Buffer memory_;  // a power of two of slots; zeros are an empty one
  size_t size_ = 0;
};

}  // namespace syntra
