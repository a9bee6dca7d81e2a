// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

TEST(Utf8, WhatIsWellFormed) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80"));
  EXPECT_FALSE(IsUtf8("\xc0\x80"));          // overlong
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80"));      // surrogate
  EXPECT_FALSE(IsUtf8("\xe2\x82"));          // cut
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
}

TEST(Utf8, FirstCharacter) {
  const auto euro = FirstCharacter("\xe2\x82\xac and more");
  ASSERT_TRUE(euro);
  EXPECT_EQ(euro->code, 0x20ACu);
  EXPECT_EQ(euro->bytes, 3u);
  for (const char* none : {"", "\xe2\x82", "\xed\xa0\x80", "\x80", "\xff"}) {
    EXPECT_FALSE(FirstCharacter(none)) << none;
  }
}

TEST(Utf8, CharactersAreCounted) {
  EXPECT_EQ(CodePointCount("d\xc3\xb6 \xe2\x82\xac"), 4u);
  EXPECT_EQ(CodePointCount(""), 0u);
}

}  // namespace
}  // namespace syntra
