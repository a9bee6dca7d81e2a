// SPDX-License-Identifier: Apache-2.0
// Models trained by TrainTokenizer: which pieces they have, which text they are trained on, and
// what the library makes of the same text.
#include "data/tokenizer_training.h"

#include <sentencepiece_trainer.h>

#include "base/text.h"
#include "data/tokenizer.h"
#include "data/tokenizer_model.pb.h"
#include "tests/base/error_of.h"
#include "tests/data/corpus_files.h"
#include "tests/data/trained_model.h"

namespace syntra {
namespace {

class TokenizerTrainingTest : public ::testing::Test {
 protected:
  // A text file: a document a line.
  std::string Corpus(const std::string& name, std::vector<std::string> documents) const {
    std::string text;
    for (std::string& document : documents) {
      std::ranges::replace(document, '\n', ' ');
      text += document + '\n';
    }
    return WriteScratch(scratch_ / name, text).string();
  }

  TokenizerText Text(const std::vector<std::string>& documents) const {
    return ReadTokenizerText({.patterns = {Corpus("corpus.txt", documents)}, .on_bad_record = {}});
  }
  TokenizerText Text() const { return Text(TrainingDocuments()); }

  Tokenizer Trained(const TokenizerTraining& training, const TokenizerText& text) const {
    return {scratch_ / "model", TrainTokenizer(training, text), 100};
  }

  Path scratch_ = ScratchDirectory("tokenizer_training");
};

TEST_F(TokenizerTrainingTest, SpecialPiecesAreThoseOfT5) {
  const Tokenizer tokenizer = Trained({.pieces = 200}, Text());
  EXPECT_EQ(tokenizer.piece_count(), 200);
  EXPECT_EQ(tokenizer.vocabulary_size(), 300);
  EXPECT_EQ(tokenizer.PieceOf(0), "<pad>");
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.unknown_id(), 2);
  EXPECT_EQ(tokenizer.bos_id(), -1);
  EXPECT_TRUE(tokenizer.HasOwnEncoder());
  const std::string text = TrainingDocuments()[0].substr(0, 39);
  std::vector<int32_t> library;
  tokenizer.EncodePlainly(text, &library);
  EXPECT_EQ(tokenizer.Encode(text), library);
  EXPECT_EQ(tokenizer.Decode(library), text);
}

TEST_F(TokenizerTrainingTest, ModelIsThatOfTheLibrary) {
  // The library skips lines that are too long; none of these is.
  const std::vector<std::string> sentences = Split(Join(TrainingDocuments(), "\n"), '.');
  for (const char* kind : {"unigram", "bpe"}) {
    const std::string corpus = Corpus("sentences.txt", sentences);
    std::string expected;
    const auto status = sentencepiece::SentencePieceTrainer::Train({{"input", corpus},
                                                                    {"model_type", kind},
                                                                    {"vocab_size", "200"},
                                                                    {"pad_id", "0"},
                                                                    {"eos_id", "1"},
                                                                    {"unk_id", "2"},
                                                                    {"bos_id", "-1"},
                                                                    {"minloglevel", "2"}},
                                                                   nullptr, &expected);
    ASSERT_TRUE(status.ok()) << status.ToString();
    tokenizer::ModelFile ours, theirs;
    ASSERT_TRUE(ours.ParseFromString(
        TrainTokenizer({.kind = kind, .pieces = 200}, ReadTokenizerText({{corpus}, "text", {}}))));
    ASSERT_TRUE(theirs.ParseFromString(expected));
    ASSERT_EQ(ours.pieces_size(), theirs.pieces_size());
    for (int i = 0; i < ours.pieces_size(); ++i) {
      EXPECT_EQ(ours.pieces(i).SerializeAsString(), theirs.pieces(i).SerializeAsString()) << i;
    }
  }
}

TEST_F(TokenizerTrainingTest, SameTextGivesTheSameModel) {
  EXPECT_EQ(TrainTokenizer({.pieces = 200}, Text()), TrainTokenizer({.pieces = 200}, Text()));
}

TEST_F(TokenizerTrainingTest, TextAfterALongLineCounts) {
  const auto has_zebra = [&](const std::string& filling) {
    std::vector<std::string> documents = TrainingDocuments();
    std::string line;
    while (line.size() < 50000) line += filling;
    for (int i = 0; i < 200; ++i) line += " zebra";
    documents.push_back(line);
    return Trained({.pieces = 200}, Text(documents)).Encode("zebra").size() == 1;
  };
  EXPECT_TRUE(has_zebra("word "));
  EXPECT_TRUE(has_zebra("\u00e9\u20ac"));  // without a space, of two and three bytes
}

TEST_F(TokenizerTrainingTest, EveryFileGivesAnEqualPart) {
  const std::string line(99, 'a');
  const auto file = [&](const char* name, size_t documents) {
    return Corpus(name, std::vector<std::string>(documents, "b " + line));
  };
  // 102 bytes each. The first has too few; the second may give what it left, the third its own.
  const TokenizerText text =
      ReadTokenizerText({.patterns = {file("1.txt", 2), file("2.txt", 100), file("3.txt", 100)},
                         .on_bad_record = {},
                         .most_bytes = 102 * 30});
  EXPECT_EQ(text.documents, 2 + 18 + 10);
  EXPECT_EQ(text.lines.size(), 102u * 30);
}

TEST_F(TokenizerTrainingTest, CharactersWithoutPiecesAreUnknownOrBytes) {
  TokenizerTraining training{.pieces = 400, .byte_fallback = true};  // 256 are bytes
  const std::string snowman = "\u2603";
  const Tokenizer bytes = Trained(training, Text());
  EXPECT_EQ(bytes.Decode(bytes.Encode(snowman)), snowman);
  training.byte_fallback = false;
  const Tokenizer unknown = Trained(training, Text());
  EXPECT_NE(unknown.Decode(unknown.Encode(snowman)), snowman);
}

TEST_F(TokenizerTrainingTest, ErrorsSayWhy) {
  const auto error_of = [&](int32_t pieces) {
    return ErrorOf([&] { TrainTokenizer({.pieces = pieces}, Text()); }, ExitCode::kConfig);
  };
  const std::string too_many = error_of(500000);
  EXPECT_NE(too_many.find("tokenizer of 500000 pieces on 8 documents: Vocabulary size"),
            std::string::npos)
      << too_many;
  const std::string of_one =
      ErrorOf([&] { TrainTokenizer({.pieces = 500000}, Text({"a text of a few words"})); },
              ExitCode::kConfig);
  EXPECT_NE(of_one.find("on 1 document: "), std::string::npos) << of_one;
  const std::string too_few = error_of(8);  // fewer than there are letters
  EXPECT_NE(too_few.find(" with --coverage option"), std::string::npos) << too_few;
  const std::string none = DataErrorOf([&] { TrainTokenizer({}, Text({" ", ""})); });
  EXPECT_NE(none.find("there is no text in"), std::string::npos) << none;
  const std::string bad = DataErrorOf([&] {
    ReadTokenizerText({{Corpus("bad.txt", {"text", "\xff"})}, "text", {.fail = true}});
  });
  EXPECT_NE(bad.find("line 2: text is not well-formed UTF-8"), std::string::npos) << bad;
}

}  // namespace
}  // namespace syntra
