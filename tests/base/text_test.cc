// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

TEST(Text, EditDistanceCountsASwapAsOne) {
  EXPECT_EQ(EditDistance("warmup", "wramup"), 1);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(Text, FormatsForPeople) {
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
  EXPECT_EQ(WithThousands(-1000), "-1,000");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(Counted(0, "file"), "0 files");
  EXPECT_EQ(Counted(1, "bad row"), "1 bad row");
  EXPECT_EQ(Counted(12345, "step"), "12,345 steps");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanFlops(1.18e11), "118.0 GFLOP/s");
  EXPECT_EQ(HumanFlops(9.89e14), "989.0 TFLOP/s");
  EXPECT_EQ(HumanDuration(11520), "3h12m");
  EXPECT_EQ(HumanDuration(1.0 / 0.0), "?");
}

TEST(Text, PrintableCommandsNoTerminal) {
  EXPECT_EQ(Printable("a\x1b[2J\n\t\x7f"), "a\\x1b[2J\\x0a\\x09\\x7f");
  // U+009B is an escape sequence's start by itself; letters beside bad bytes stay.
  EXPECT_EQ(Printable("\xc2\x9b\xc3\xa9\xff\xe2\x82"), "\\xc2\\x9b\xc3\xa9\\xff\\xe2\\x82");
  EXPECT_EQ(Printable("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xc3\xa9...");
  EXPECT_EQ(Printable("ab", 2), "ab");
}

TEST(Text, ShellWord) {
  EXPECT_EQ(ShellWord("train.directory=/runs/a-1"), "train.directory=/runs/a-1");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's $HOME"), "'it'\\''s $HOME'");
}

TEST(Text, OneLineHasNoBreaks) { EXPECT_EQ(OneLine("a\nb\r\nc\td"), "a b  c\td"); }

TEST(Text, FittingLine) {
  EXPECT_EQ(FittingLine("\u00e4\u00f6\u00fc", 3), "\u00e4\u00f6\u00fc");
  EXPECT_EQ(FittingLine("\u00e4\u00f6\u00fc\u00df!", 4), "\u00e4...");
  EXPECT_EQ(FittingLine("a\nb", 6), "a\\x0ab");
  EXPECT_EQ(FittingLine("a\nb", 5), "a\\...");
  EXPECT_EQ(FittingLine("abcd", 2), "..");
  EXPECT_EQ(FittingLine("abcd", 0), "");
  EXPECT_EQ(FittingLine("", 0), "");
}

TEST(Text, NumbersMustFillTheText) {
  int64_t integer;
  double number;
  EXPECT_TRUE(ParseInt64("-12", &integer));
  EXPECT_EQ(integer, -12);
  EXPECT_FALSE(ParseInt64("12x", &integer));
  EXPECT_FALSE(ParseInt64("", &integer));
  EXPECT_TRUE(ParseDouble("2.5e-3", &number));
  EXPECT_EQ(number, 2.5e-3);
  EXPECT_TRUE(ParseDouble("1e-400", &number));
  EXPECT_EQ(number, 0);
  EXPECT_FALSE(ParseDouble("1e400", &number));
  EXPECT_FALSE(ParseDouble("1e-400x", &number));
}

TEST(Text, WrapText) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(WrapText("the cat sat on the mat", 7), (Lines{"the cat", "sat on", "the mat"}));
  EXPECT_EQ(WrapText("", 7), Lines{""});
  EXPECT_EQ(WrapText("  a   b ", 7), Lines{"a b"});
  EXPECT_EQ(WrapText("a longest word", 5), (Lines{"a", "longe", "st", "word"}));
  EXPECT_EQ(WrapText("ab c", 0), (Lines{"a", "b", "c"}));
  // Columns are code points.
  EXPECT_EQ(WrapText("\u00e4\u00f6 \u00fc\u00fc\u00fc", 2),
            (Lines{"\u00e4\u00f6", "\u00fc\u00fc", "\u00fc"}));
}

}  // namespace
}  // namespace syntra
