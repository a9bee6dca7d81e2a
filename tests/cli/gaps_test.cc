// SPDX-License-Identifier: Apache-2.0
// Filling gaps in texts, with T5's vocabulary.
#include "cli/gaps.h"

#include <gtest/gtest.h>

#include "train/validation_samples.h"

namespace syntra {
namespace {

class Gaps : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    tokenizer_ = new Tokenizer(SYNTRA_SOURCE_DIR "/data/sample/spiece.model", 100);
  }
  static void TearDownTestSuite() { delete tokenizer_; }

  static int32_t PieceId(const std::string& piece) {
    for (int32_t id = 0; id < tokenizer_->piece_count(); ++id) {
      if (tokenizer_->PieceOf(id) == piece) return id;
    }
    ADD_FAILURE() << "no piece " << piece;
    return 0;
  }
  // The output of a model: text with sentinels.
  static std::string Fill(const std::string& line, const std::string& output) {
    return FillGaps(*tokenizer_, line,
                    SpansOf(*tokenizer_, tokenizer_->EncodeWithSentinels(output)));
  }

  static inline Tokenizer* tokenizer_ = nullptr;
};

TEST_F(Gaps, SpansStandInThePlaceOfGaps) {
  EXPECT_EQ(Fill("The cat sat on <extra_id_0> mat.", "<extra_id_0> the <extra_id_1> of"),
            "The cat sat on the mat.");
  EXPECT_EQ(Fill("<extra_id_7> and <extra_id_2>.", "<extra_id_2> mice <extra_id_7> Cats"),
            "Cats and mice.");
  // All else stays as it is, byte for byte.
  EXPECT_EQ(Fill("\t\xff  A  <extra_id_0>\xe2\x80\xa6 ", "<extra_id_0> b"),
            "\t\xff  A  b\xe2\x80\xa6 ");
  EXPECT_EQ(Fill("no gap <extra_id_100> <extra_id_x>", "<extra_id_0> b"),
            "no gap <extra_id_100> <extra_id_x>");
}

TEST_F(Gaps, WhatTheModelLeavesOutStaysAGap) {
  EXPECT_EQ(Fill("a <extra_id_0> b <extra_id_1> c", "<extra_id_1> x"), "a <extra_id_0> b x c");
  // An empty span is an answer.
  EXPECT_EQ(Fill("a <extra_id_0> b", "<extra_id_0> <extra_id_1>"), "a b");
  EXPECT_EQ(Fill("<extra_id_0> a <extra_id_1>.", "<extra_id_0> <extra_id_1>"), "a.");
  // If a sentinel occurs twice, the first one counts. Text before all sentinels is ignored.
  EXPECT_EQ(Fill("a <extra_id_0> b", "w <extra_id_0> x <extra_id_1> y <extra_id_0> z"), "a x b");
}

TEST_F(Gaps, ASpanInsideAWordJoinsIt) {
  const Spans spans{{0, {PieceId("ing"), PieceId("\u2581foot")}}, {1, {PieceId("ball")}}};
  EXPECT_EQ(FillGaps(*tokenizer_, "He was play <extra_id_0> <extra_id_1> all day", spans),
            "He was playing football all day");
}

// A model's vocabulary may be larger than the tokenizer's. SentencePiece writes what is unknown
// with a space on each side.
TEST_F(Gaps, IdsOfNoPieceAreUnknown) {
  const Spans spans{{0, {tokenizer_->vocabulary_size() + 3}}};
  EXPECT_EQ(FillGaps(*tokenizer_, "a <extra_id_0> b", spans), "a \u2047  b");
}

TEST_F(Gaps, RequestsEndWithEosAndNameTheirSentinels) {
  const DecodeRequest request = RequestFor(*tokenizer_, "a <extra_id_3> b <extra_id_0>");
  EXPECT_EQ(request.ids.back(), tokenizer_->eos_id());
  EXPECT_EQ(request.sentinels,
            (std::set<int32_t>{tokenizer_->SentinelId(3), tokenizer_->SentinelId(0)}));
}

// The sentinel after the last span that was asked for ends an output; without sentinels EOS does.
TEST_F(Gaps, OutputsEndWithTheirLastSpan) {
  const DecodeRequest two = RequestFor(*tokenizer_, "<extra_id_1> b <extra_id_0>");
  const DecodeRequest third = RequestFor(*tokenizer_, "<extra_id_2>"), none{{1}, {}};
  const auto tokens_until_end = [&](const DecodeRequest& request, const std::string& output) {
    std::vector<int32_t> prefix;
    for (const int32_t id : RequestFor(*tokenizer_, output).ids) {
      if (EndsBefore(request, *tokenizer_, prefix, id)) return static_cast<int64_t>(prefix.size());
      prefix.push_back(id);
    }
    return int64_t{-1};
  };
  const std::string output = "<extra_id_0> the <extra_id_1> the <extra_id_2> the <extra_id_3> the";
  EXPECT_EQ(tokens_until_end(two, output), 4);
  EXPECT_EQ(tokens_until_end(third, output), 6);
  EXPECT_EQ(tokens_until_end(none, output), 8);  // EOS
  // Any sentinel may be the one after it. A model may have ids above them, which are no tokens.
  const auto ends_before = [&](int32_t id) {
    return EndsBefore(third, *tokenizer_, std::vector{tokenizer_->SentinelId(2)}, id);
  };
  const int32_t first = tokenizer_->SentinelId(0), last = tokenizer_->SentinelId(99);
  EXPECT_TRUE(ends_before(first));
  EXPECT_TRUE(ends_before(last));
  EXPECT_FALSE(ends_before(first + 1));
  EXPECT_FALSE(ends_before(last - 1));
}

TEST_F(Gaps, ATargetFollowsItsTextAsItIs) {
  const auto after = [](const std::string& text, const std::string& rest) {
    return IdsAfter(*tokenizer_, text, tokenizer_->Encode(text), rest);
  };
  const std::vector<int32_t> word{PieceId("\u2581cat")}, end{PieceId(".")};
  EXPECT_EQ(after("The", " cat"), word);
  EXPECT_EQ(after("The ", "cat"), word);
  EXPECT_EQ(after("The cat", "."), end);
  EXPECT_EQ(after("", "The cat."), tokenizer_->Encode("The cat."));
  EXPECT_EQ(after("The", ""), std::vector<int32_t>());
  EXPECT_EQ(after("The c", "at"), std::nullopt);
  // Corpora have no sentinels.
  EXPECT_EQ(RequestToGoOn(*tokenizer_, "a <extra_id_0>").ids, tokenizer_->Encode("a <extra_id_0>"));
}

TEST_F(Gaps, BeginningsAreGoneOnWith) {
  const DecodeRequest request = RequestToGoOn(*tokenizer_, "A cat");
  EXPECT_EQ(request.ids, tokenizer_->Encode("A cat"));
  EXPECT_TRUE(request.sentinels.empty());
  const auto go_on = [&](const std::string& text, const std::vector<std::string>& pieces) {
    std::vector<int32_t> ids;
    for (const std::string& piece : pieces) ids.push_back(PieceId(piece));
    return GoOn(*tokenizer_, text, ids);
  };
  EXPECT_EQ(go_on("He was play", {"ing", "\u2581foot", "ball"}), "He was playing football");
  EXPECT_EQ(go_on("He was", {"\u2581play", "ing"}), "He was playing");
  EXPECT_EQ(go_on("", {"\u2581foot", "ball"}), "football");
  EXPECT_EQ(go_on("He was", {}), "He was");
  // The text stays as it is, byte for byte, also where tokens cannot say it.
  EXPECT_EQ(go_on("He  was\xff", {"\u2581play"}), "He  was\xff play");
  // A space that is there already stands for the next word's.
  for (const std::string begun : {"He was ", "He was\t"}) {
    EXPECT_EQ(go_on(begun, {"\u2581play", "ing"}), begun + "playing");
  }
  EXPECT_EQ(go_on("He was  ", {"\u2581play"}), "He was  play");
  EXPECT_EQ(go_on("He was play ", {"ing"}), "He was play ing");
}

TEST(Samples, AreSpreadOverTheExamples) {
  for (const int64_t examples : {10, 11, 1000}) {
    int64_t before = -1;
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t index = SampleIndex(i, 10, examples);
      EXPECT_GT(index, before);
      before = index;
    }
    EXPECT_LT(before, examples);
  }
  EXPECT_GT(SampleIndex(1, 3, 300) - SampleIndex(0, 3, 300), 90);
}

}  // namespace
}  // namespace syntra
