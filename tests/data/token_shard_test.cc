// SPDX-License-Identifier: Apache-2.0
#include "data/token_shard.h"

#include <algorithm>
#include <numeric>

#include "data/corpus_index.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

Digest WriteShard(const Path& path, int64_t vocabulary, const std::vector<Ids>& documents) {
  std::filesystem::remove(path);
  TokenShardWriter writer(path, vocabulary);
  for (const Ids& document : documents) writer.AddDocument(document);
  ShardFacts facts{.bad_records = 3,
                   .source_bytes = 77,
                   .source = DigestOf("source"),
                   .tokenizer = DigestOf("tokenizer"),
                   .settings = DigestOf("settings")};
  return writer.Commit(&facts);
}

TEST(TokenShard, HoldsWhatWasWritten) {
  const Path directory = ScratchDirectory("shard");
  for (const int64_t vocabulary : {32100, 65536, 65537, 300000}) {
    const Path path = directory / fmt::format("{}.tokens", vocabulary);
    const auto top = static_cast<int32_t>(vocabulary - 1);
    const Digest digest = WriteShard(path, vocabulary, {{1, 2, 3}, {}, {top}, {5, 6}});
    const TokenShard shard(path, vocabulary);
    shard.Verify();
    const ShardSummary& summary = shard.summary();
    EXPECT_EQ(summary.digest, digest);
    EXPECT_EQ(shard.document_count(), 3);
    EXPECT_EQ(shard.token_count(), 6);
    EXPECT_EQ(summary.facts.empty_documents, 1u);
    EXPECT_EQ(summary.facts.bad_records, 3u);
    EXPECT_EQ(summary.facts.tokenizer, DigestOf("tokenizer"));
    EXPECT_EQ(shard.DocumentBegin(1), 3);
    EXPECT_EQ(shard.DocumentLength(2), 2);
    Ids tokens(6);
    shard.CopyTokens(0, tokens);
    EXPECT_EQ(tokens, (Ids{1, 2, 3, top, 5, 6}));
  }
}

TEST(TokenShard, EqualInputsGiveEqualBytes) {
  const Path directory = ScratchDirectory("shard_bytes");
  WriteShard(directory / "a.tokens", 100, {{1, 2}, {3}});
  WriteShard(directory / "b.tokens", 100, {{1, 2}, {3}});
  EXPECT_EQ(ReadWholeFile(directory / "a.tokens"), ReadWholeFile(directory / "b.tokens"));
}

TEST(TokenShard, AnEmptyShardIsAShard) {
  const Path path = ScratchDirectory("shard_empty") / "e.tokens";
  WriteShard(path, 100, {});
  const TokenShard shard(path, 100);
  EXPECT_EQ(shard.document_count(), 0);
  shard.Verify();
}

TEST(TokenShard, UnfinishedShardsLeaveNothing) {
  const Path directory = ScratchDirectory("shard_unfinished");
  {
    TokenShardWriter writer(directory / "u.tokens", 100);
    writer.AddDocument(Ids{1, 2});
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST(TokenShard, EveryFlippedByteAndEveryCutIsFound) {
  const Path directory = ScratchDirectory("shard_damage");
  WriteShard(directory / "good.tokens", 100, {{1, 2, 3}, {4, 5}});
  const std::string good = ReadWholeFile(directory / "good.tokens");
  const Path path = directory / "bad.tokens";
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    WriteScratch(path, bad);
    EXPECT_TRUE(DataErrorOf([&] { TokenShard(path, 100).Verify(); }).starts_with(path.string()))
        << i;
    WriteScratch(path, good.substr(0, i));
    DataErrorOf([&] { TokenShard shard(path, 100); });
  }
  WriteScratch(path, good + "x");
  DataErrorOf([&] { TokenShard shard(path, 100); });
}

TEST(TokenShard, ADamagedTokenIsFoundWhenItsBlockIsRead) {
  const Path path = ScratchDirectory("shard_blocks") / "s.tokens";
  const auto block_tokens = static_cast<int32_t>(kChecksumBlock / 2);
  Ids document(3 * block_tokens);
  std::iota(document.begin(), document.end(), 0);
  WriteShard(path, 65536, {document});
  std::string bytes = ReadWholeFile(path);
  bytes[kChecksumBlock + 100] ^= 1;  // in the second block
  WriteScratch(path, bytes);
  const TokenShard shard(path, 65536);
  Ids tokens(1000);
  for (const int32_t begin : {0, 2 * block_tokens}) {
    shard.CopyTokens(begin, tokens);
    EXPECT_TRUE(std::ranges::equal(tokens, std::span(document).subspan(begin, tokens.size())));
  }
  // Neither its neighbours nor its offset in the block matter.
  for (const int32_t begin : {block_tokens - 500, 2 * block_tokens - 1032}) {
    const std::string error = DataErrorOf([&] { shard.CopyTokens(begin, tokens); });
    EXPECT_EQ(error,
              path.string() +
                  ": damaged near byte 4096: the bytes do not match their checksum; remove it "
                  "and prepare the corpus again");
  }
  EXPECT_EQ(ReadShardSummary(path).facts.tokens, document.size());
}

TEST(TokenShard, AnIdOutsideTheVocabularyIsNotCopied) {
  const Path path = ScratchDirectory("shard_forged") / "s.tokens";
  WriteShard(path, 100, {{1, 2, 50}});
  const TokenShard shard(path, 50);
  Ids tokens(2);
  shard.CopyTokens(0, tokens);
  EXPECT_NE(DataErrorOf([&] {
              shard.CopyTokens(1, tokens);
            }).find("token id 50 is outside the vocabulary of 50"),
            std::string::npos);
}

// The digests are those of the first version, by which checkpoints know their data.
TEST(TokenShard, DigestsAreThoseOfTheFirstVersion) {
  const Path directory = ScratchDirectory("shard_first");
  WriteShard(directory / "s.tokens", 100, {{1, 2, 3}, {4, 5}});
  const ShardSummary summary = ReadShardSummary(directory / "s.tokens");
  EXPECT_EQ(ToHex(summary.digest), "5f67776ae8b814ca960ef23e5fd21deb");
  EXPECT_EQ(ToHex(summary.content), "d18ff99084278e7718f8458dc167d0b9");
  // It ended with its digest: 64 bytes of tokens and 64 of offsets before a trailer of 112.
  const std::string bytes = ReadWholeFile(directory / "s.tokens");
  WriteScratch(directory / "first.tokens", bytes.substr(0, 64 + 64 + 64 + 112));
  EXPECT_NE(DataErrorOf([&] {
              ReadShardSummary(directory / "first.tokens");
            }).find("an earlier version of this program made it"),
            std::string::npos);
}

TEST(CorpusIndex, SurvivesItsFile) {
  const Path directory = ScratchDirectory("index");
  CorpusIndex index{"abc", "def", {{"a.tokens", "/x/a\xff.json", 1, 2, 3, 4, 5, "00"}}};
  WriteIndex(directory, index);
  const CorpusIndex read = ReadIndex(directory);
  EXPECT_EQ(read.tokenizer, "abc");
  ASSERT_EQ(read.shards.size(), 1u);
  EXPECT_EQ(read.shards[0].file, "a.tokens");
  EXPECT_EQ(read.shards[0].bad_records, 4);
  EXPECT_EQ(read.DataDigest(), index.DataDigest());
}

TEST(CorpusIndex, RefusesDamageAndEscapes) {
  const Path directory = ScratchDirectory("index_bad");
  DataErrorOf([&] { ReadIndex(directory); });
  for (const char* name : {"../a.tokens", "/etc/passwd", "", "..", "a/b"}) {
    WriteIndex(directory, {"abc", "def", {{name, "s", 1, 2, 3, 4, 5, "00"}}});
    EXPECT_NE(DataErrorOf([&] { ReadIndex(directory); }).find("not a plain file name"),
              std::string::npos);
  }
  WriteScratch(directory / "INDEX.json", "{\"format\":");
  EXPECT_NE(DataErrorOf([&] { ReadIndex(directory); }).find("is damaged"), std::string::npos);
  WriteScratch(directory / "INDEX.json", "{\"format\":\"other\",\"version\":1}");
  DataErrorOf([&] { ReadIndex(directory); });
}

}  // namespace
}  // namespace syntra
