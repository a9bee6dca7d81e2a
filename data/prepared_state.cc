// SPDX-License-Identifier: Apache-2.0
#include "data/prepared_state.h"

#include "base/error.h"
#include "data/byte_source.h"

namespace syntra {
namespace {

// With T5's pieces English text in JSON has about 4 bytes a token, and gzip shrinks it to a third.
// The bounds are for text with long pieces that compresses badly.
struct Ratio {
  double bytes_per_token, compression;
};
constexpr Ratio kProbable{4, 3}, kAtLeast{8, 1.5};

double ShardBytes(const Path& source, int64_t bytes, int32_t vocabulary_size, const Ratio& ratio) {
  const bool compressed = source.extension() == ".gz";
  const double text = static_cast<double>(bytes) * (compressed ? ratio.compression : 1);
  return text / ratio.bytes_per_token * (vocabulary_size <= 65536 ? 2 : 4);
}

// The shard, if the file is a valid one.
std::optional<TokenShard> OpenShard(const Path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    return TokenShard(path, /*verify=*/false);
  } catch (const Error&) {
    return std::nullopt;  // damaged, and made again
  }
}

std::optional<Mismatch> MismatchOf(const ShardFacts& facts, int64_t source_bytes,
                                   const Tokenizer& tokenizer, const Digest& settings) {
  if (static_cast<int64_t>(facts.source_bytes) != source_bytes) return Mismatch::kSource;
  if (facts.tokenizer != tokenizer.digest()) return Mismatch::kTokenizer;
  if (facts.settings != settings) return Mismatch::kSettings;
  return std::nullopt;
}

}  // namespace

PreparedState LookAtPrepared(const PrepareOptions& options, const Tokenizer& tokenizer) {
  const Digest settings = SettingsDigest(options.text_field, tokenizer);
  PreparedState state;
  CorpusIndex index;
  for (const ShardTask& task : ShardTasks(options)) {
    ++state.files;
    const int64_t bytes = OpenCorpusFile(task.source).Size();
    state.source_bytes += bytes;
    const std::optional<TokenShard> shard = OpenShard(task.shard);
    const std::optional<Mismatch> mismatch =
        shard ? MismatchOf(shard->facts(), bytes, tokenizer, settings) : std::nullopt;
    if (shard && !mismatch) {
      index.shards.push_back(EntryOf(*shard, task.source));
      continue;
    }
    if (mismatch && state.mismatch.empty()) {
      state.mismatch = MismatchText(*mismatch, task.shard, task.source);
    }
    state.unfinished.push_back(task.source);
    const int32_t vocabulary = tokenizer.vocabulary_size();
    state.least_bytes += ShardBytes(task.source, bytes, vocabulary, kAtLeast);
    state.probable_bytes += ShardBytes(task.source, bytes, vocabulary, kProbable);
  }
  if (state.unfinished.empty()) state.data_digest = index.DataDigest();
  return state;
}

}  // namespace syntra
