// SPDX-License-Identifier: Apache-2.0
// Models of many kinds, as SentencePiece's trainer makes them: ids, special pieces, and the
// requirements of training.
#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>

#include "base/memory_limits.h"
#include "configs/schema/config.pb.h"
#include "core/random.h"
#include "core/thread.h"
#include "data/normalizer.h"
#include "data/objective.h"
#include "data/record_reader.h"
#include "data/segmenter.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_model.pb.h"
#include "data/training_data.h"
#include "tests/base/error_of.h"
#include "tests/base/outcome.h"
#include "tests/data/corpus_files.h"
#include "tests/data/trained_model.h"

namespace syntra {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr const char* kSnowman = "The price is \u2603 today, and \u2603\u2603 tomorrow";

struct Kind {
  const char* name;
  const char* options;
  int32_t first_piece_id, unknown_id, eos_id;
  bool has_own_encoder = true;
};

const Kind kKinds[] = {
    {"trainer", "", 1, 1, 3},
    {"t5", "--pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1", 0, 2, 1},
    {"pad_last", "--unk_id=0 --bos_id=1 --eos_id=2 --pad_id=3", 1, 1, 3},
    {"bos_first", "--bos_id=0 --eos_id=1 --unk_id=2", 0, 2, 1},
    {"eos_first", "--eos_id=0 --unk_id=1 --bos_id=-1", 1, 2, 1},
    {"no_eos", "--eos_id=-1 --bos_id=-1", 1, 1, -1},
    {"bytes", "--byte_fallback=true --vocab_size=450 --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1",
     0, 2, 1},
    {"symbols", "--user_defined_symbols=<extra_id_0>,ice,@@", 1, 1, 3},
    {"identity", "--normalization_rule_name=identity", 1, 1, 3},
    {"folded", "--normalization_rule_name=nmt_nfkc_cf", 1, 1, 3},
    {"suffix", "--treat_whitespace_as_suffix=true", 1, 1, 3},
    {"no_prefix", "--add_dummy_prefix=false", 1, 1, 3},
    {"spaces", "--remove_extra_whitespaces=false --normalization_rule_name=identity", 1, 1, 3},
    {"across_words", "--split_by_whitespace=false", 1, 1, 3},
    {"mixed", "--split_by_unicode_script=false --split_by_number=false", 1, 1, 3},
    {"bpe", "--model_type=bpe", 1, 1, 3, false},
    {"bpe_bytes", "--model_type=bpe --byte_fallback=true --vocab_size=450", 1, 1, 3, false},
    {"characters", "--model_type=char", 1, 1, 3, false},
};

std::vector<std::string> Texts() {
  std::vector<std::string> texts = {
      kSnowman,
      "",
      "  ",
      " two  spaces\t\ttabs \n lines  ",
      "ice <extra_id_0> price @@@ \u2603@@ice <s> </s> <unk> <pad>",
      "été où Ünï x\u0308 \u2581a \u00a0 ﬁ ½ ｆｕｌｌ 生活的真谛是 \U0001F600",
      "bad \xff\xc3( \xe2\x98 \xf0\x9f bytes \xed\xa0\x80\xc0\x80",
      std::string("a\0b \0 c", 7),
      "don't, won't. 1990s (e-mail): Q~QQ~~^Z{}X J%%Jz zq~Xq",
      std::string(3000, '-') + std::string(2000, 'a')};
  // Bytes of few kinds in every order.
  for (uint32_t i = 0; i < 300; ++i) {
    constexpr std::string_view kBytes("ab.Q~ \t\0\xcc\x88", 10);
    std::string& text = texts.emplace_back();
    for (uint64_t at = 0; at < i; ++at) {
      text += kBytes[UniformBelow(RandomAt({i, 3}, at)[0], kBytes.size())];
    }
  }
  const auto reader = OpenRecordReader(SamplePath("c4-validation.00000-of-00001.json.gz"), "text");
  std::string joined;
  for (Record record; texts.size() < 360 && reader->Next(&record);) {
    texts.emplace_back(record.text);
    joined += record.text;
  }
  // Longer than what is compared with SentencePiece as it is encoded.
  std::erase(joined, ' ');
  texts.push_back(joined.substr(0, 50000));
  return texts;
}

void ExpectSentencePiecesIdsAndNeverPadding(const Kind& kind, const Tokenizer& tokenizer) {
  EXPECT_EQ(tokenizer.first_piece_id(), kind.first_piece_id);
  EXPECT_EQ(tokenizer.unknown_id(), kind.unknown_id);
  EXPECT_EQ(tokenizer.eos_id(), kind.eos_id);
  EXPECT_EQ(tokenizer.HasOwnEncoder(), kind.has_own_encoder);
  EXPECT_EQ(tokenizer.vocabulary_size(), kind.first_piece_id + tokenizer.piece_count() + 20);
  Ids plain;
  for (const std::string& text : Texts()) {
    const Ids ids = tokenizer.Encode(text);
    tokenizer.EncodePlainly(text, &plain);
    ASSERT_EQ(ids, plain) << text.substr(0, 200);
    for (const int32_t id : ids) {
      ASSERT_GT(id, 0) << text.substr(0, 200);
      ASSERT_LT(id, tokenizer.SentinelId(19)) << text.substr(0, 200);
      ASSERT_NE(id, tokenizer.eos_id());
    }
  }
  EXPECT_EQ(tokenizer.HasOwnEncoder(), kind.has_own_encoder);
}

void ExpectUnknownsAreKept(const Kind& kind, const Tokenizer& tokenizer) {
  const Ids ids = tokenizer.Encode(kSnowman);
  const std::string text = tokenizer.Decode(ids);
  if (std::string(kind.options).find("byte_fallback") == std::string::npos) {
    EXPECT_EQ(std::ranges::count(ids, tokenizer.unknown_id()), 2);
    EXPECT_NE(text.find("is  \u2047  today"), std::string::npos) << text;
  } else {
    EXPECT_EQ(text, kSnowman);
  }
  EXPECT_EQ(tokenizer.PieceOf(tokenizer.unknown_id()), "<unk>");
  EXPECT_EQ(tokenizer.PieceOf(tokenizer.SentinelId(3)), "<extra_id_3>");
  EXPECT_EQ(tokenizer.PieceOf(0) == "<padding>", kind.first_piece_id == 1);
  Ids with_sentinels = tokenizer.EncodeWithSentinels("price <extra_id_1> today");
  EXPECT_EQ(std::ranges::count(with_sentinels, tokenizer.SentinelId(1)), 1);
  EXPECT_NE(tokenizer.Decode(with_sentinels).find(" <extra_id_1> "), std::string::npos);
}

// Whatever ids follow, a character that was begun in bytes among them.
void ExpectTextsBeginAsTheirBeginnings(const Tokenizer& tokenizer) {
  std::vector<Ids> outputs{tokenizer.Encode(kSnowman), tokenizer.Encode("生活的真谛是 \U0001F600")};
  for (uint32_t i = 0; i < 200; ++i) {
    Ids& ids = outputs.emplace_back();
    for (uint64_t place = 0; place < 12; ++place) {
      const uint32_t drawn = RandomAt({i, 7}, place)[0];
      ids.push_back(static_cast<int32_t>(UniformBelow(drawn, tokenizer.vocabulary_size())));
    }
  }
  for (const Ids& ids : outputs) {
    const std::string text = tokenizer.Decode(ids);
    for (size_t length = 0; length <= ids.size(); ++length) {
      const std::string begun = tokenizer.DecodeBeginning(std::span(ids).first(length));
      ASSERT_TRUE(text.starts_with(begun)) << '"' << begun << "\" in \"" << text << '"';
    }
  }
}

void ExpectTrainingAsksForAnEosAndRoom(const Kind& kind, const Tokenizer& tokenizer) {
  const int32_t size = tokenizer.vocabulary_size();
  if (kind.eos_id < 0) {
    const std::string message = DataErrorOf([&] { CheckCanTrain(tokenizer, 100000); });
    EXPECT_NE(message.find("--pad_id=0 --eos_id=1"), std::string::npos) << message;
    DataErrorOf([&] { ObjectiveSettings::From(DataConfig(), tokenizer); });
    return;
  }
  const std::string rows = std::to_string(size - 1);
  CheckCanTrain(tokenizer, size);
  EXPECT_THAT(ErrorOf([&] { CheckCanTrain(tokenizer, size - 1); }, ExitCode::kConfig),
              HasSubstr("model.vocabulary_size " + rows + " is smaller than the tokenizer's"));
  CheckFitsTrained(tokenizer, size);
  EXPECT_THAT(ErrorOf([&] { CheckFitsTrained(tokenizer, size - 1); }, ExitCode::kConfig),
              AllOf(HasSubstr("has been trained, has rows for " + rows),
                    HasSubstr("use the tokenizer and the data.extra_ids of its training")));
}

// One model after the other: training them takes most of the time.
TEST(Tokenizers, OfEveryKind) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const Tokenizer tokenizer(TrainedModel(kind.name, kind.options), 20);
    ExpectSentencePiecesIdsAndNeverPadding(kind, tokenizer);
    ExpectUnknownsAreKept(kind, tokenizer);
    ExpectTextsBeginAsTheirBeginnings(tokenizer);
    ExpectTrainingAsksForAnEosAndRoom(kind, tokenizer);
  }
}

// Rules that rewrite decoded text may change what stands before.
TEST(Tokenizers, TextThatIsRewrittenHasNoBeginning) {
  const Path path = TrainedModel("folded", "--normalization_rule_name=nmt_nfkc_cf");
  tokenizer::ModelFile file;
  ASSERT_TRUE(file.ParseFromString(ReadWholeFile(path)));
  const Ids ids = Tokenizer(path, 20).Encode("The price");
  EXPECT_EQ(Tokenizer(path, 20).DecodeBeginning(ids), "the price");
  *file.mutable_denormalizer() = file.normalizer();
  const Tokenizer rewriting(path, file.SerializeAsString(), 20);
  EXPECT_NE(rewriting.Decode(ids), "the price");
  EXPECT_EQ(rewriting.DecodeBeginning(ids), "");
}

// A model's own "<extra_id_0>" is a piece as any other; sentinels lie above.
TEST(Tokenizers, SentinelsAreNotTheModelsOwn) {
  const Tokenizer tokenizer(
      TrainedModel("own_sentinels", "--user_defined_symbols=<extra_id_0>,<extra_id_1>"), 20);
  const Ids ids = tokenizer.Encode("a <extra_id_0> b");
  const auto own = std::ranges::find_if(
      ids, [&](int32_t id) { return tokenizer.PieceOf(id) == "<extra_id_0>"; });
  ASSERT_NE(own, ids.end());
  EXPECT_LT(*own, tokenizer.SentinelId(19));
  EXPECT_EQ(std::ranges::count(tokenizer.EncodeWithSentinels("a <extra_id_0> b"),
                               tokenizer.SentinelId(0)),
            1);
}

// From a corpus to a batch and back, with the trainer's default special pieces.
TEST(Tokenizers, UnknownCharactersReachTheBatch) {
  const Path directory = ScratchDirectory("unknown");
  const Tokenizer tokenizer(TrainedModel("unknown", ""), 20);
  DataConfig config;
  config.add_train(WriteScratch(directory / "snow.txt", std::string(kSnowman) + "\n").string());
  config.set_input_length(64);
  config.set_noise_density(0.1);
  config.set_extra_ids(20);
  const PreparedCorpus prepared = PrepareCorpus(TrainingPreparation(config, directory), tokenizer);
  EXPECT_EQ(prepared.index.tokens(), std::ssize(tokenizer.Encode(kSnowman)));
  const Batch batch =
      TrainingData::Open(config, SeparateRows(), tokenizer, prepared, 1).Get(0, 1, 0, 1);
  EXPECT_EQ(std::ranges::count(batch["encoder_ids"], tokenizer.unknown_id()) +
                std::ranges::count(batch["targets"], tokenizer.unknown_id()),
            2);
  for (int64_t i = 0; i < batch.input_length; ++i) {
    EXPECT_EQ(batch["encoder_ids"][i] == 0, batch["encoder_segments"][i] == 0);
  }
}

// Shards and checkpoints stand on these: they may change only where ids do.
TEST(Tokenizers, IdentitiesAreStable) {
  const Tokenizer t5(SamplePath("spiece.model"), 100);
  EXPECT_EQ(t5.identity(), ToHex(t5.digest()));
  EXPECT_EQ(ToHex(SettingsDigest("text", t5)),
            ToHex(DigestOf("text_field=text\nvocabulary=32100\n")));
  const Path shifted_model = TrainedModel("identity", "");
  const Tokenizer shifted(shifted_model, 20);
  EXPECT_EQ(shifted.identity(), ToHex(shifted.digest()) + ", padding before pieces");
  // The settings of this model's shards when its token ids were one lower, with the same
  // vocabulary.
  EXPECT_NE(SettingsDigest("text", shifted),
            DigestOf(fmt::format("text_field=text\nvocabulary={}\n", shifted.vocabulary_size())));
  if (SentencePieceVersion() == "0.1.97") {
    const Tokenizer bpe(TrainedModel("identity_bpe", "--model_type=bpe --pad_id=0 --unk_id=3"), 20);
    EXPECT_EQ(bpe.identity(), ToHex(bpe.digest()));
  }
}

// Pieces of equal score: SentencePiece 0.2.3 gives 1603, 17065.
TEST(Tokenizers, TiesFollowOneOrder) {
  const Tokenizer t5(SamplePath("spiece.model"), 100);
  EXPECT_EQ(t5.Encode("UPDATED!!!!!!! YEAAAAHH"),
            (Ids{3, 6880, 4296, 11430, 17065, 1603, 3, 476, 427, 5498, 5498, 23123}));
  EXPECT_TRUE(t5.HasOwnEncoder());
}

// How segmentations of another version of the library are told from wrong ones.
TEST(Tokenizers, OtherSegmentationsOfEqualScoreAreRecognized) {
  tokenizer::ModelFile model;
  ASSERT_TRUE(model.ParseFromString(ReadWholeFile(SamplePath("spiece.model"))));
  Segmenter segmenter(std::make_shared<const PieceTable>(model));
  std::string normal;
  Normalizer(model).Normalize("UPDATED!!!!!!! \u2603\u2603", &normal);
  float sum = 0;
  Ids ids;
  segmenter.Segment(normal, &sum, &ids);
  const Ids theirs{3, 6880, 4296, 11430, 1603, 17065, 3, 2};
  EXPECT_NE(ids, theirs);
  const std::vector<std::string> texts{"\u2581", "UP",    "DA",     "TED",
                                       "!!",     "!!!!!", "\u2581", "\u2603\u2603"};
  EXPECT_NEAR(segmenter.pieces().ScoreOf(theirs, texts), sum, 1e-4);
  const Ids worse{3, 6880, 4296, 11430, 1603, 1603, 1603, 55, 3, 2};
  EXPECT_LT(segmenter.pieces().ScoreOf(worse, std::vector<std::string>(10, "\u2603\u2603")),
            sum - 1);
}

// Every model that SentencePiece loads, damaged or not, gives the ids of SentencePiece.
TEST(Tokenizers, DamagedModelsGiveSentencePiecesIdsOrAnError) {
  const Path directory = ScratchDirectory("damaged");
  const std::string good =
      ReadWholeFile(TrainedModel("damaged_good",
                                 "--normalization_rule_name=identity --byte_fallback=true "
                                 "--vocab_size=450 --user_defined_symbols=@@"));
  std::mt19937 random(1);
  int loaded = 0;
  Ids plain;
  for (int trial = 0; trial < 100; ++trial) {
    std::string bad = good;
    for (int i = 0; i <= trial % 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random() % 256);
    }
    const Path path = WriteScratch(directory / "a.model", bad);
    try {
      const Tokenizer tokenizer(path, 20);
      ++loaded;
      for (const std::string text : {kSnowman, "a few words @@ of a text that ought to be read"}) {
        tokenizer.EncodePlainly(text, &plain);
        ASSERT_EQ(tokenizer.Encode(text), plain) << trial;
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ExitCode::kData) << error.what();
    }
  }
  EXPECT_GT(loaded, 10);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYNTRA_NEEDS_PLAIN_MEMORY() GTEST_SKIP() << "the sanitizer takes memory of its own"
#else
#define SYNTRA_NEEDS_PLAIN_MEMORY()
#endif

// Runs `body` in a child, and returns what it returns (at most 255).
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return CodeOfStatus(status);
}

std::string WithoutSpaces(size_t bytes) {
  std::mt19937 random(1);
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

TEST(Tokenizers, ALongWordTakesAFewBytesAByte) {
  SYNTRA_NEEDS_PLAIN_MEMORY();
  const Tokenizer t5(SamplePath("spiece.model"), 100);
  const std::string text = WithoutSpaces(size_t{2} << 20);
  EXPECT_EQ(InChild([&] {
              const int64_t before = PeakResidentBytes();
              const Ids ids = t5.Encode(text);
              const int64_t taken = PeakResidentBytes() - before - 4 * std::ssize(ids);
              std::fprintf(stderr, "%.1f bytes a byte\n",
                           static_cast<double>(taken) / static_cast<double>(text.size()));
              return taken < 8 * std::ssize(text) ? 0 : 1;
            }),
            0);
  Ids plain;
  const std::string shorter = text.substr(0, 200000);
  t5.EncodePlainly(shorter, &plain);
  EXPECT_EQ(t5.Encode(shorter), plain);
}

// With a model that only the library can encode with, whose memory is limited.
TEST(Tokenizers, OutOfMemoryNamesTheFile) {
  SYNTRA_NEEDS_PLAIN_MEMORY();
  const Tokenizer bpe(TrainedModel("memory", "--model_type=bpe"), 20);
  const Path directory = ScratchDirectory("memory");
  PrepareOptions options;
  options.patterns = {WriteScratch(directory / "long.txt", WithoutSpaces(2000000)).string()};
  options.directory = directory;
  EXPECT_EQ(InChild([&] {
              SetThreadCount(1);
              // The stack cannot grow where no memory is left.
              volatile char stack[512 << 10];
              for (size_t i = 0; i < sizeof stack; i += 1024) stack[i] = 0;
              malloc_trim(0);  // what earlier tests used
              std::ifstream statm("/proc/self/statm");
              int64_t pages = 0;
              statm >> pages;
              const rlim_t limit = pages * sysconf(_SC_PAGESIZE) + (100 << 20);
              const rlimit limits{limit, limit};
              setrlimit(RLIMIT_AS, &limits);
              try {
                PrepareCorpus(options, bpe);
              } catch (const Error& error) {
                const std::string message = error.what();
                std::fprintf(stderr, "%s\n", message.c_str());
                return error.code() == ExitCode::kResources &&
                               message.find("long.txt") != std::string::npos
                           ? 0
                           : 1;
              }
              return 2;
            }),
            0);
}

}  // namespace
}  // namespace syntra
