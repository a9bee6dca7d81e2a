// SPDX-License-Identifier: Apache-2.0
#include "data/prepared_state.h"

#include "data/byte_source.h"
#include "data/record_formats.h"
#include "data/shard_mismatch.h"

namespace syntra {
namespace {

// The bytes that a file's tokens may take, as a low and a probable guess, since only tokenizing
// tells.
struct Estimate {
  double low, probable;
};

// English text has about 4 bytes a token with T5's pieces, JSON around it included. The low one is
// for long pieces.
constexpr Estimate kTokensPerByte{1.0 / 8, 1.0 / 4};

// Bytes of text in a byte of the file. The low ones are for text that compresses badly; the pages
// of a Parquet file may be not compressed at all, or by several methods.
Estimate TextPerByte(File& file) {
  std::byte first[4];
  const std::span<const std::byte> start(first, file.Read(first));
  if (StartsLikeGzip(start)) return {1.5, 3};
  if (StartsLikeParquet(start)) return {1, 2};
  return {1, 1};
}

// Of the shard, if the file is a valid one.
std::optional<ShardSummary> FindSummary(const Path& path) {
  if (!Exists(path)) return std::nullopt;
  try {
    return ReadShardSummary(path);
  } catch (const ShardError&) {
    return std::nullopt;  // damaged, and made again
  }
}

}  // namespace

PreparedState LookAtPrepared(const PrepareOptions& options, const Tokenizer& tokenizer) {
  const ShardSettings wanted{tokenizer.digest(), SettingsDigest(options.text_field, tokenizer),
                             options.on_bad_record};
  const double token_bytes = tokenizer.vocabulary_size() <= 65536 ? 2 : 4;
  PreparedState state;
  CorpusIndex index;
  for (const ShardTask& task : ShardTasks(options)) {
    ++state.files;
    File file = OpenCorpusFile(task.source);
    const int64_t bytes = file.Size();
    state.source_bytes += bytes;
    const std::optional<ShardSummary> shard = FindSummary(task.shard);
    const std::optional<Mismatch> mismatch =
        shard ? MismatchOf(shard->facts, wanted, {bytes, std::nullopt}) : std::nullopt;
    if (shard && !mismatch) {
      index.shards.push_back(EntryOf(*shard, task.source));
      continue;
    }
    if (mismatch && state.mismatch.empty()) {
      state.mismatch = MismatchText(*mismatch, task.shard, task.source);
    }
    state.unfinished.push_back(task.source);
    const Estimate text = TextPerByte(file);
    const double size = static_cast<double>(bytes) * token_bytes;
    state.low_bytes += size * text.low * kTokensPerByte.low;
    state.probable_bytes += size * text.probable * kTokensPerByte.probable;
  }
  if (state.unfinished.empty()) state.data_digest = index.DataDigest();
  return state;
}

}  // namespace syntra
