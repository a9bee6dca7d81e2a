// SPDX-License-Identifier: Apache-2.0
#include "data/word_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenizer_model.pb.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

using testing::ElementsAre;

tokenizer::ModelFile T5Model() {
  tokenizer::ModelFile model;
  EXPECT_TRUE(model.ParseFromString(ReadWholeFile(SamplePath("spiece.model"))));
  return model;
}

// The words of `text`; those that no space precedes begin with '+'.
std::vector<std::string> WordsOf(const std::string& text,
                                 const tokenizer::ModelFile& model = T5Model()) {
  WordSplitter splitter(model, Normalizer(model));
  splitter.Begin(text);
  std::vector<std::string> words;
  for (TextWord word; splitter.Next(&word);) {
    words.push_back((word.after_space ? "" : "+") + std::string(word.text));
  }
  return words;
}

TEST(WordSplitter, WordsEndAtSpacesAndBetweenLettersAndOtherCharacters) {
  EXPECT_THAT(WordsOf("I don't  stop"), ElementsAre("I", "don", "+'", "+t", "stop"));
  EXPECT_THAT(WordsOf("(1990s)\t\nnow."), ElementsAre("(1990", "+s", "+)", "now", "+."));
  EXPECT_THAT(WordsOf(""), ElementsAre());
  EXPECT_THAT(WordsOf("a"), ElementsAre("a"));
}

// Where spaces or neighbours could join in a rule of the normalizer, no word ends.
TEST(WordSplitter, OtherCharactersKeepTheirNeighbours) {
  EXPECT_THAT(WordsOf("caf\u00e9-bar x"), ElementsAre("caf\u00e9-", "+bar", "x"));
  EXPECT_THAT(WordsOf("a \u0308b c"), ElementsAre("a \u0308b", "c"));
  EXPECT_THAT(WordsOf("e\u0301 a"), ElementsAre("e\u0301 a"));
  EXPECT_THAT(WordsOf("-e\u0301 a.b"), ElementsAre("-e\u0301 a", "+.", "+b"));
  EXPECT_THAT(WordsOf("  a b "), ElementsAre("  a", "b "));
  EXPECT_THAT(WordsOf("  "), ElementsAre("  "));
}

TEST(WordSplitter, WordsReachAcrossBlocksOf64Bytes) {
  for (size_t before = 50; before < 140; ++before) {
    const std::string first(before, 'x');
    EXPECT_THAT(WordsOf(first + "   b.c"), ElementsAre(first, "b", "+.", "+c")) << before;
    EXPECT_THAT(WordsOf(first + "-e\u0301"), ElementsAre(first, "+-e\u0301")) << before;
    const std::string spaces(before, ' ');
    EXPECT_THAT(WordsOf("a" + spaces + "b"), ElementsAre("a", "b")) << before;
    EXPECT_THAT(WordsOf("a" + spaces + "\u0308"), ElementsAre("a" + spaces + "\u0308")) << before;
  }
}

TEST(WordSplitter, APieceOfTwoKindsJoinsThem) {
  tokenizer::ModelFile model = T5Model();
  auto* piece = model.add_pieces();
  piece->set_piece("n't");
  piece->set_score(-5);
  EXPECT_THAT(WordsOf("I don't stop.", model), ElementsAre("I", "don't", "stop."));
  piece->set_piece("a\u2581z");
  EXPECT_THAT(WordsOf("I don't stop.", model), ElementsAre("I don't stop."));
}

// A run of unknown characters is one token.
TEST(WordSplitter, AnUnknownLetterStaysWithItsNeighbours) {
  tokenizer::ModelFile model = T5Model();
  for (auto& piece : *model.mutable_pieces()) {
    if (piece.piece() == "Q") piece.set_type(tokenizer::ModelFile::UNUSED);
  }
  EXPECT_THAT(WordsOf("I don't stop.", model), ElementsAre("I", "don't", "stop."));
}

TEST(WordSplitter, KeysTellWordsApart) {
  const std::string text("a\0 a", 4);
  const WordKey a = WordKey::Of(text, 0, 1, true);
  EXPECT_FALSE(a == WordKey::Of(text, 0, 1, false));
  EXPECT_FALSE(a == WordKey::Of(text, 0, 2, true));
  EXPECT_TRUE(a == WordKey::Of(text, 3, 1, true));
  EXPECT_FALSE(WordKey::Of(text, 1, 1, true).empty());
  const std::string longest(15, 'x');
  EXPECT_FALSE(WordKey::Of(longest, 0, 15, true).empty());
  EXPECT_TRUE(WordKey::Of(longest + "x", 0, 16, true).empty());
}

}  // namespace
}  // namespace syntra
