// SPDX-License-Identifier: Apache-2.0
// What becomes of texts: as Python does it, in T5's functions and by itself.
#include <gtest/gtest.h>
#include <unistr.h>

#include <map>

#include "base/text.h"
#include "metrics/bleu_words.h"
#include "metrics/score_text.h"
#include "metrics/squad_text.h"
#include "metrics/unicode_text.h"
#include "metrics/wsc_text.h"
#include "tests/metrics/golden_json.h"

namespace syntra {
namespace {

TEST(SquadText, IsNormalisedAsT5Does) {
  const Json file = GoldenJson("metrics.json");
  for (const Json& golden : file["squad_text"]) {
    EXPECT_EQ(NormalizeSquad(golden[0].get<std::string>()), golden[1].get<std::string>()) << golden;
  }
}

TEST(SquadText, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(NormalizeSquad("The \xFF"
                           "Cat"),
            "\uFFFD"
            "cat");
}

TEST(WscText, IsJudgedAsT5Does) {
  const Json file = GoldenJson("metrics.json");
  for (const Json& golden : file["wsc_text"]) {
    EXPECT_EQ(NamesReferent(golden[0].get<std::string>(), golden[1].get<std::string>()),
              golden[2].get<int>())
        << golden;
  }
  const Json of_t5 = GoldenJson("t5_metrics.json");
  for (const Json& golden : of_t5["postprocess_wsc_simple"]["cases"]) {
    EXPECT_EQ(
        NamesReferent(golden["prediction"].get<std::string>(), golden["target"].get<std::string>()),
        golden["expect"].get<int>())
        << golden;
  }
}

// A name and what belongs to it are not the same, although one has all words of the other.
TEST(WscText, APossessiveNamesSomethingElse) {
  EXPECT_EQ(NamesReferent("Bob's dog", "dog"), 0);
  EXPECT_EQ(NamesReferent("dog", "Bob's dog"), 0);
  EXPECT_EQ(NamesReferent("dog", "old dog"), 1);
  EXPECT_EQ(NamesReferent("Bob's", "Bob's dog"), 1);
}

TEST(ScoreText, IsReadAsPythonDoes) {
  const Json file = GoldenJson("metrics.json");
  for (const Json& golden : file["score_text"]) {
    EXPECT_EQ(ScoreOfText(golden[0].get<std::string>()), golden[1].get<double>()) << golden;
  }
}

TEST(BleuWords, AreSacrebleus) {
  const Json file = GoldenJson("metrics.json");
  for (const Json& golden : file["bleu_words"]) {
    const std::string text = golden[0];
    EXPECT_EQ(InternationalWords(text), golden[1].get<std::vector<std::string>>()) << golden;
    EXPECT_EQ(Mteval13aWords(text), golden[2].get<std::vector<std::string>>()) << golden;
  }
}

// --- characters --------------------------------------------------------------------------------

// Every code point that is a character, but the end of a line.
std::vector<uint32_t> AllCharacters() {
  std::vector<uint32_t> codes;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if ((code < 0xD800 || code >= 0xE000) && code != '\n') codes.push_back(code);
  }
  return codes;
}

std::string Utf8(uint32_t code) {
  uint8_t bytes[6];
  return {reinterpret_cast<char*>(bytes), static_cast<size_t>(u8_uctomb(bytes, code, 6))};
}

// A flag for each code point of a list of ranges.
std::vector<bool> Flags(const Json& ranges) {
  std::vector<bool> flags(0x110000);
  for (const Json& range : ranges) {
    std::fill(flags.begin() + range[0].get<int>(), flags.begin() + range[1].get<int>() + 1, true);
  }
  return flags;
}

TEST(UnicodeText, EveryCharacterIsWhatPythonSays) {
  const Json golden = GoldenJson("unicode.json");
  const std::vector<bool> unassigned = Flags(golden["unassigned"]), word = Flags(golden["word"]),
                          space = Flags(golden["space"]),
                          punctuation = Flags(golden["punctuation"]);
  const auto mapped = golden["lower"].get<std::map<std::string, std::string>>();
  std::string text;
  for (const uint32_t code : AllCharacters()) text += Utf8(code) + '\n';
  const std::vector<std::string> lower = Split(LowerCase(text), '\n');
  size_t line = 0;
  for (const uint32_t code : AllCharacters()) {
    const std::string& found = lower.at(line++);
    // Later versions of Unicode may have given it a meaning.
    if (unassigned[code]) continue;
    ASSERT_EQ(IsWordCharacter(code), word[code]) << std::hex << code;
    ASSERT_EQ(IsSpace(code), space[code]) << std::hex << code;
    ASSERT_EQ(IsAsciiPunctuation(code), punctuation[code]) << std::hex << code;
    const auto expected = mapped.find(Utf8(code));
    ASSERT_EQ(found, expected == mapped.end() ? Utf8(code) : expected->second) << std::hex << code;
  }
}

TEST(UnicodeText, ALastSigmaHasItsOwnForm) {
  EXPECT_EQ(LowerCase("ΟΔΟΣ Σ ΣΑΣ. Α\u0301Σ!"), "οδος σ σας. α\u0301ς!");
}

// As Python's str.upper and str.islower have them.
TEST(UnicodeText, UpperCaseIsOfWholeLetters) {
  EXPECT_EQ(UpperCase("straße ﬁ é ж 1"), "STRASSE FI É Ж 1");
  for (const uint32_t lower : {U'a', U'é', U'ß', U'ж', U'ª'}) EXPECT_TRUE(IsLowerCase(lower));
  for (const uint32_t other : {U'A', U'É', U'1', U'中', U'\u0130', U'('}) {
    EXPECT_FALSE(IsLowerCase(other));
  }
}

TEST(UnicodeText, SplitsAndStripsAtAnySpace) {
  const std::string text = "\u3000 one\x1Ctwo\u00A0\u2028three\u200B \n";
  EXPECT_EQ(SplitAtSpace(text), (std::vector<std::string_view>{"one", "two", "three\u200B"}));
  EXPECT_EQ(StripUnicodeSpace(text), "one\x1Ctwo\u00A0\u2028three\u200B");
  EXPECT_EQ(StripUnicodeSpace(" \n"), "");
  EXPECT_TRUE(SplitAtSpace("").empty());
}

TEST(UnicodeText, ReplacesFromTheLeft) {
  EXPECT_EQ(Replaced("aaab", "aa", "a"), "aab");
  EXPECT_EQ(Replaced("xax", "x", "yy"), "yyayy");
  EXPECT_EQ(Replaced("", "x", "y"), "");
  // If the rest of the text were moved each time, this would take minutes.
  std::string quotes;
  for (int i = 0; i < 2000000; ++i) quotes += "&quot;";
  EXPECT_EQ(Replaced(quotes, "&quot;", "\""), std::string(2000000, '"'));
}

TEST(UnicodeText, OddBytesAreOneReplacementCharacterEach) {
  EXPECT_EQ(LowerCase("A\xFF"
                      "B\xC3"),
            "a\uFFFDb\uFFFD");
  EXPECT_EQ(Characters("\xE2\x82"
                       "A")
                .back()
                .bytes,
            "A");
}

}  // namespace
}  // namespace syntra
