// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer.h"

#include <unistd.h>

#include "base/crash_guard.h"
#include "base/json.h"
#include "core/thread.h"
#include "data/record_reader.h"
#include "tests/base/child_process.h"
#include "tests/base/scratch.h"
#include "tests/data/corpus_files.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

Json ReadJson(const Path& path) { return ParseJson(ReadWholeFile(path)); }

TEST(Tokenizer, KnowsItsVocabulary) {
  EXPECT_EQ(T5().piece_count(), 32000);
  EXPECT_EQ(T5().vocabulary_size(), 32100);
  EXPECT_EQ(T5().eos_id(), 1);
  EXPECT_EQ(T5().unknown_id(), 2);
  EXPECT_EQ(T5().SentinelId(0), 32099);
  EXPECT_EQ(T5().SentinelId(99), 32000);
  EXPECT_EQ(T5().PieceOf(32099), "<extra_id_0>");
  EXPECT_EQ(T5().PieceOf(1), "</s>");
  EXPECT_EQ(ToHex(T5().digest()), ToHex(DigestOf(ReadWholeFile(T5().path()))));
}

TEST(Tokenizer, EncodesAndDecodes) {
  EXPECT_EQ(T5().Encode("How are you doing?"), (Ids{571, 33, 25, 692, 58}));
  EXPECT_EQ(T5().Encode(""), Ids{});
  EXPECT_EQ(T5().Encode(" \n "), Ids{});
  EXPECT_EQ(T5().Decode(Ids{571, 33, 25, 692, 58, 1, 571}), "How are you doing?");
  EXPECT_EQ(T5().Decode(Ids{0, 571, 0, 33, 0}), "How are");
  EXPECT_EQ(T5().Decode(Ids{32099, 571, 33, 32098, 32097, 1}),
            "<extra_id_0> How are <extra_id_1> <extra_id_2>");
  EXPECT_EQ(T5().Decode(Ids{571, 32127}), "How ⁇ ");
  EXPECT_EQ(T5().Decode(Ids{}), "");
}

TEST(Tokenizer, SentinelsInTextAreTextUnlessAskedFor) {
  const std::string text = "Thank <extra_id_0> me <extra_id_1>";
  for (const int32_t id : T5().Encode(text)) EXPECT_LT(id, 32000);
  Ids expected = T5().Encode("Thank");
  expected.push_back(32099);
  for (const int32_t id : T5().Encode("me")) expected.push_back(id);
  expected.push_back(32098);
  EXPECT_EQ(T5().EncodeWithSentinels(text), expected);
  for (const char* other : {"<extra_id_100>", "<extra_id_>", "<extra_id_01>", "<extra_id_-1>",
                            "<extra_id_1", "<extra_id_x>"}) {
    EXPECT_EQ(T5().EncodeWithSentinels(other), T5().Encode(other)) << other;
  }
  EXPECT_EQ(T5().EncodeWithSentinels("<extra_id_<extra_id_3>").back(), 32096);
  EXPECT_EQ(T5().Decode(T5().EncodeWithSentinels(text)), text);
}

TEST(Tokenizer, RefusesOtherFiles) {
  const Path path = ScratchDirectory("tokenizer") / "a.model";
  const std::string good = ReadWholeFile(SamplePath("spiece.model"));
  // The file, the reason, what to do; nothing of the library's insides.
  const std::pair<std::string, std::string> cases[] = {
      {"this is not a model", "it is cut short, damaged or another kind of file"},
      {good.substr(0, good.size() / 2), "it is cut short, damaged or another kind of file"},
      {"", "it is empty"},
      {std::string("\x0a\x02\x0a\x00", 4), "piece must not be empty"}};
  for (const auto& [content, reason] : cases) {
    WriteScratch(path, content);
    EXPECT_EQ(DataErrorOf([&] { Tokenizer(path, 100); }),
              path.string() + " is not a SentencePiece model: " + reason +
                  "; give the .model file as SentencePiece wrote it");
  }
}

// SentencePiece takes them, and what it takes must not make another library print.
TEST(Tokenizer, PiecesThatAreNotUtf8AreTakenInSilence) {
  std::string model = ReadWholeFile(SamplePath("spiece.model"));
  const size_t at = model.find("\xe2\x96\x81was");
  ASSERT_NE(at, std::string::npos);
  model[at + 3] = '\xff';
  const Path path = WriteScratch(ScratchDirectory("not_utf8") / "a.model", model);
  testing::internal::CaptureStderr();
  const std::vector<int32_t> ids = Tokenizer(path, 100).Encode("it was so");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(ids.empty());
}

TEST(Tokenizer, GivesTheExpectedIds) {
  SYNTRA_NEEDS_SHARED_DATA();
  const Path expected = SharedDataPath() / "expected/tokenize";
  int cases = 0;
  const auto t5_cases = ReadJson(expected / "t5_spiece.json");
  for (const auto& item : t5_cases.at("cases")) {
    if (!item.at("plain_sentencepiece").get<bool>()) continue;
    const std::string text = item.at("text");
    Ids ids = T5().Encode(text);
    if (item.at("eos_appended").get<bool>()) ids.push_back(T5().eos_id());
    EXPECT_EQ(ids, item.at("ids").get<Ids>()) << text;
    ++cases;
  }
  EXPECT_GT(cases, 20);
  for (const auto& item : ReadJson(expected / "other_models.json")) {
    const Tokenizer tokenizer(SharedDataPath() / item.at("model").get<std::string>(), 0);
    const std::string text = item.at("text");
    Ids ids = item.at("ids").get<Ids>();  // of pieces
    for (int32_t& id : ids) id += tokenizer.first_piece_id();
    EXPECT_EQ(tokenizer.Encode(text), ids) << text;
  }
  const auto french = ReadJson(expected / "t5_base_encoded.json");
  Ids french_ids = T5().Encode(french.at("text").get<std::string>());
  french_ids.push_back(T5().eos_id());
  EXPECT_EQ(french_ids, french.at("token_ids").get<Ids>());
}

// The word cache must be invisible: the same ids as SentencePiece, document by document.
void ExpectPlainIds(const Tokenizer& tokenizer, const Path& path, int64_t minimum) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, "text");
  Ids fast, plain;
  int64_t documents = 0;
  std::string joined;
  for (Record record; reader->Next(&record);) {
    if (record.fault != RecordFault::kNone) continue;
    tokenizer.Encode(record.text, &fast);
    tokenizer.EncodePlainly(record.text, &plain);
    ASSERT_EQ(fast, plain) << path << " line " << record.line;
    ++documents;
    // Long documents too: there SentencePiece's running score is coarse, and ties are many.
    joined.append(record.text).push_back('\n');
    if (joined.size() < 200000) continue;
    tokenizer.Encode(joined, &fast);
    tokenizer.EncodePlainly(joined, &plain);
    ASSERT_EQ(fast, plain) << path << " before line " << record.line;
    joined.clear();
  }
  EXPECT_GE(documents, minimum);
}

TEST(WordCache, IsUsedForT5) {
  T5().Encode("some words");
  EXPECT_TRUE(T5().HasOwnEncoder());
}

TEST(WordCache, EveryThreadHasOne) {
  const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i)
    texts.push_back(fmt::format("text {} of the {}th thread", i * i, i % 7));
  std::vector<std::vector<int32_t>> ids(texts.size());
  const int threads = ThreadCount();
  SetThreadCount(4);
  ParallelFor(2000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) tokenizer.Encode(texts[i], &ids[i]);
  });
  SetThreadCount(threads);
  std::vector<int32_t> plain;
  for (size_t i = 0; i < texts.size(); ++i) {
    tokenizer.EncodePlainly(texts[i], &plain);
    ASSERT_EQ(ids[i], plain) << texts[i];
  }
  EXPECT_TRUE(tokenizer.HasOwnEncoder());
}

TEST(WordCache, GivesSentencePiecesIdsOnC4) {
  ExpectPlainIds(T5(), SamplePath("c4-train.00000-of-00001.json.gz"), 1000);
  ExpectPlainIds(T5(), SamplePath("c4-validation.00000-of-00001.json.gz"), 200);
  EXPECT_TRUE(T5().HasOwnEncoder());
}

TEST(WordCache, GivesSentencePiecesIdsOnHardTexts) {
  std::string control;
  for (int c = 1; c < 256; ++c)
    control += fmt::format("a{0}b {0} c{0} {0}d ", static_cast<char>(c & 0x7f));
  for (const std::string& text :
       {std::string("-- - -- -- - - --- ---- -- -"),
        std::string("é é é a été où Ünï \u0308 x\u0308 y"),
        std::string("a\u00a0b \u00a0 c\u3000d \u2581e f\u2581 g"),
        std::string("生活的真谛是 生活 a 生 b"),
        std::string("  lead\t\ttabs\r\nlines \n\n trail  "), std::string(5000, 'a'),
        std::string(3000, '-') + " " + std::string(3000, '-'),
        std::string("</s> <pad> <unk> <extra_id_0>"), std::string("ﬁ ﬂ ½ ㎞ ｆｕｌｌ ｗｉｄｔｈ ①"),
        std::string("\xe2\x80\x8b zero \u200b width\u200b \u200b"),
        std::string("\u00a8 \u0385 a \u00a8b"), control}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      Ids plain;
      T5().EncodePlainly(text, &plain);
      EXPECT_EQ(T5().Encode(text), plain) << text;
    }
  }
}

// A word with two equal segmentations, after so many cached words that the sum before it is
// coarse.
TEST(WordCache, FindsTheSumBehindCachedWords) {
  std::string text;
  Ids plain;
  for (int words = 0; words < 20000; ++words) {
    text += words % 7 == 0 ? "model " : "the ";
    if (words % 1999 != 0) continue;
    text += "-- - --- !!!!! ";
    T5().EncodePlainly(text, &plain);
    ASSERT_EQ(T5().Encode(text), plain) << words;
  }
}

TEST(WordCache, GivesSentencePiecesIdsOnBooksAndWikipedia) {
  SYNTRA_NEEDS_SHARED_DATA();
  ExpectPlainIds(T5(), SharedDataPath() / "text/wikitext-2/wiki.train.tokens.gz", 20000);
  for (const auto& entry :
       std::filesystem::directory_iterator(SharedDataPath() / "text/gutenberg")) {
    ExpectPlainIds(T5(), entry.path(), 1000);
  }
  EXPECT_TRUE(T5().HasOwnEncoder());
}

TEST(WordCache, GivesSentencePiecesIdsWithOtherModels) {
  SYNTRA_NEEDS_SHARED_DATA();
  for (const char* model :
       {"hf_test/test_sentencepiece.model", "hf_test/test_sentencepiece_bpe.model",
        "seqio_test/sentencepiece.model", "sp_test/test_model.model"}) {
    const Tokenizer tokenizer(SharedDataPath() / "spm" / model, 100);
    ExpectPlainIds(tokenizer, SamplePath("c4-validation.00000-of-00001.json.gz"), 200);
  }
}

// Bytes in the table of normal forms, which SentencePiece follows wherever they lead.
TEST(Tokenizer, ADamagedModelThatCrashesIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer handles crashes itself";
#endif
  std::string content = ReadWholeFile(SamplePath("spiece.model"));
  content.replace(699117, 512, 512, '\xff');
  const Path path = ScratchDirectory("tokenizer") / "damaged.model";
  ReplaceFileDurably(path, content);
  const Outcome ended = RunInChild([&] {
    InstallCrashHandlers("1");
    Tokenizer(path, 100).Encode("\u2122");
  });
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_TRUE(ended.Says("the SentencePiece model " + path.string() + " is damaged")) << ended.err;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace syntra
