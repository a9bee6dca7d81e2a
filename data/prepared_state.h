// SPDX-License-Identifier: Apache-2.0
// Which parts of a corpus are prepared already. Reads only the trailers of token shards and the
// sizes of corpus files, and changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare.h"

namespace syntra {

struct PreparedState {
  int64_t files = 0;  // of the corpus
  int64_t source_bytes = 0;
  std::vector<Path> unfinished;  // corpus files without a usable token shard
  // A lower bound and an estimate of the bytes that the missing token shards will take. The number
  // of tokens in a text and its compression ratio are not known in advance.
  double least_bytes = 0, probable_bytes = 0;
  std::string mismatch;               // why the first shard that exists must be made again
  std::optional<Digest> data_digest;  // CorpusIndex::DataDigest, if all are finished
};

// Throws Error(kData) as ShardTasks does.
PreparedState LookAtPrepared(const PrepareOptions& options, const Tokenizer& tokenizer);

}  // namespace syntra
