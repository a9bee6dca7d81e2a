// SPDX-License-Identifier: Apache-2.0
// What is known of token shards before any is made or read through.
#include "data/prepared_state.h"

#include "data/shard_mismatch.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

Digest Filled(uint8_t value) {
  Digest digest;
  digest.fill(value);
  return digest;
}

// The first reason counts; without the corpus file's digest its size stands for it.
TEST(ShardMismatch, EveryReason) {
  const ShardFacts facts{.documents = 90,
                         .empty_documents = 9,
                         .bad_records = 1,
                         .source_bytes = 1000,
                         .source = Filled(1),
                         .tokenizer = Filled(2),
                         .settings = Filled(3)};
  const ShardSettings wanted{Filled(2), Filled(3), {}};
  EXPECT_EQ(MismatchOf(facts, wanted, {1000, Filled(1)}), std::nullopt);
  EXPECT_EQ(MismatchOf(facts, wanted, {1000, std::nullopt}), std::nullopt);
  EXPECT_EQ(MismatchOf(facts, wanted, {1000, Filled(9)}), Mismatch::kSource);
  EXPECT_EQ(MismatchOf(facts, wanted, {999, std::nullopt}), Mismatch::kSource);
  EXPECT_EQ(MismatchOf(facts, {Filled(9), Filled(3), {}}, {1000, {}}), Mismatch::kTokenizer);
  EXPECT_EQ(MismatchOf(facts, {Filled(2), Filled(9), {}}, {1000, {}}), Mismatch::kSettings);
  for (const BadRecordPolicy& strict : {BadRecordPolicy{.fail = true}, {.max_fraction = 0}}) {
    EXPECT_EQ(MismatchOf(facts, {Filled(2), Filled(3), strict}, {1000, {}}), Mismatch::kBadRecords);
  }
  ShardFacts two = facts;
  two.bad_records = 2;
  EXPECT_EQ(MismatchOf(two, wanted, {1000, {}}), Mismatch::kBadRecords);
  EXPECT_EQ(MismatchOf(two, {Filled(2), Filled(3), {.max_fraction = 0.01}}, {1000, {}}),
            Mismatch::kBadRecords);  // 2 of 101
  EXPECT_EQ(MismatchOf(two, {Filled(2), Filled(3), {.max_fraction = 0.03}}, {1000, {}}),
            std::nullopt);
}

// Compressed files hold more text than they have bytes: by their content, whatever their names are.
TEST(PreparedState, EstimatesOfCompressedFiles) {
  const Path directory = ScratchDirectory("estimates");
  const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
  const std::string rest(100000, 'x');
  const auto state_of = [&](const std::string& start) {
    const Path path = WriteScratch(directory / "corpus", start + rest);
    return LookAtPrepared({.patterns = {path.string()}, .directory = directory / "prepared"},
                          tokenizer);
  };
  const PreparedState text = state_of("text"), gzip = state_of("\x1f\x8b\x08 "),
                      parquet = state_of("PAR1");
  // 4 bytes a token, 2 bytes an id.
  EXPECT_EQ(text.probable_bytes, 50002);
  EXPECT_EQ(gzip.probable_bytes, 3 * text.probable_bytes);
  EXPECT_EQ(parquet.probable_bytes, 2 * text.probable_bytes);
  // The pages of a Parquet file may be as they are.
  EXPECT_EQ(parquet.low_bytes, text.low_bytes);
  EXPECT_GT(gzip.low_bytes, text.low_bytes);
  for (const PreparedState& state : {text, gzip, parquet}) {
    EXPECT_EQ(state.unfinished.size(), 1u);
    EXPECT_LT(state.low_bytes, state.probable_bytes);
  }
}

}  // namespace
}  // namespace syntra
