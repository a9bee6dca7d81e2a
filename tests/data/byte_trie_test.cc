// SPDX-License-Identifier: Apache-2.0
#include "data/byte_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/random.h"

namespace syntra {
namespace {

using Found = std::vector<std::pair<size_t, int32_t>>;

Found PrefixesOf(const ByteTrie& trie, std::string_view text) {
  Found found;
  trie.VisitPrefixes(text,
                     [&](size_t length, int32_t value) { found.emplace_back(length, value); });
  return found;
}

Found Expected(const std::map<std::string, int32_t>& keys, std::string_view text) {
  Found found;
  for (size_t length = 1; length <= text.size(); ++length) {
    const auto key = keys.find(std::string(text.substr(0, length)));
    if (key != keys.end()) found.emplace_back(length, key->second);
  }
  return found;
}

Found NodesOf(const ByteTrie& trie, std::string_view text) {
  Found found;
  trie.VisitNodes(text, [&](size_t length, int32_t value) { found.emplace_back(length, value); });
  return found;
}

Found ExpectedNodes(const std::map<std::string, int32_t>& keys, std::string_view text) {
  Found found;
  for (size_t length = 1; length <= text.size(); ++length) {
    const std::string beginning(text.substr(0, length));
    const auto key = keys.lower_bound(beginning);
    if (key == keys.end() || !key->first.starts_with(beginning)) break;
    found.emplace_back(length, key->first == beginning ? key->second : ByteTrie::kNoKey);
  }
  return found;
}

// Texts of few different bytes, so that many begin alike, or of all bytes, 0 and 255 among them.
std::string RandomText(uint64_t number, uint32_t bytes) {
  const auto draw = [&](uint64_t i, uint32_t below) {
    return UniformBelow(RandomAt({7, bytes}, 100 * number + i)[0], below);
  };
  std::string text(1 + draw(99, 12), '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(draw(i, bytes));
  return text;
}

TEST(ByteTrie, FindsEveryKeyThatATextStartsWith) {
  for (const uint32_t bytes : {2u, 20u, 256u}) {
    std::map<std::string, int32_t> keys;
    std::vector<ByteTrie::Entry> entries;
    for (int32_t i = 0; i < 20000; ++i) keys[RandomText(i, bytes)] = i;
    for (const auto& [key, value] : keys) entries.emplace_back(key, value);
    const ByteTrie trie(std::move(entries));
    for (const auto& [key, value] : keys) {
      ASSERT_EQ(PrefixesOf(trie, key), Expected(keys, key));
      ASSERT_EQ(PrefixesOf(trie, key + "more"), Expected(keys, key + "more"));
    }
    for (uint64_t i = 20000; i < 40000; ++i) {
      const std::string text = RandomText(i, bytes);
      ASSERT_EQ(PrefixesOf(trie, text), Expected(keys, text));
      ASSERT_EQ(NodesOf(trie, text), ExpectedNodes(keys, text));
    }
  }
}

TEST(ByteTrie, OfNothingFindsNothing) {
  EXPECT_TRUE(ByteTrie().empty());
  EXPECT_EQ(PrefixesOf(ByteTrie(), std::string(2, '\0')), Found());
}

TEST(ByteTrie, TheLastOfEqualKeysCounts) {
  const ByteTrie trie({{"ab", 3}, {"a", ByteTrie::kMostValue}, {"ab", 1}});
  EXPECT_EQ(PrefixesOf(trie, "abc"), (Found{{1, ByteTrie::kMostValue}, {2, 1}}));
}

}  // namespace
}  // namespace syntra
