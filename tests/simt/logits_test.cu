// SPDX-License-Identifier: Apache-2.0
// How a call's tokens are cut into chunks of logits.
#include "kernels/cuda/logits.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

constexpr int64_t kGpuLogits = 64 << 20;  // on a GPU

gpu::LogitChunks ChunksOf(int64_t tokens, int64_t vocabulary) {
  constexpr int64_t kWidth = 19;
  return gpu::LogitChunks(
      {{{"scale", 1.0}},
       {{DType::kBF16, {1, tokens, kWidth}}, {DType::kF32, {vocabulary, kWidth}}},
       {},
       {}},
      kGpuLogits);
}

TEST(LogitChunks, AreWholeTilesThatCoverAllTokens) {
  for (const int64_t vocabulary : {2, 32128, 250112, 1 << 20}) {
    for (const int64_t tokens : {1, 127, 128, 129, 2087, 14592, 65536}) {
      SCOPED_TRACE(fmt::format("{} tokens, {} words", tokens, vocabulary));
      const gpu::LogitChunks chunks = ChunksOf(tokens, vocabulary);
      int64_t next = 0;
      for (int64_t i = 0; i < chunks.count; ++i) {
        EXPECT_EQ(chunks.first(i), next);
        EXPECT_EQ(chunks.first(i) % 128, 0);
        EXPECT_EQ(chunks.hidden_bytes(i) % Buffer::kAlignment, 0u);
        EXPECT_GT(chunks.size(i), 0);
        EXPECT_LE(chunks.size(i), chunks.rows);
        next += chunks.size(i);
      }
      EXPECT_EQ(next, tokens);
      EXPECT_LE(chunks.rows * vocabulary, std::max<int64_t>(kGpuLogits, 128 * vocabulary));
    }
  }
}

TEST(LogitChunks, AreAsFewAsFitAndOfLikeSize) {
  // 16 tiles of the base model's logits are at most 256 MB, 114 tiles make eight chunks.
  const gpu::LogitChunks chunks = ChunksOf(14592, 32128);
  EXPECT_EQ(chunks.count, 8);
  EXPECT_EQ(chunks.rows, 15 * 128);
  EXPECT_EQ(ChunksOf(2048, 32128).count, 1);
}

}  // namespace
}  // namespace syntra
