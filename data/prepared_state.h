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
  std::vector<Path> unfinished;  // files that have no usable token shard yet
  // Estimates of the bytes that the token shards still to be made will take: a low one and a
  // probable one. How many tokens a text has and how well it was compressed is only known
  // afterwards.
  double low_bytes = 0, probable_bytes = 0;
  std::string mismatch;               // why the first shard to be rebuilt cannot be used
  std::optional<Digest> data_digest;  // CorpusIndex::DataDigest, if all are finished
};

// Throws Error(kData) as ShardTasks does.
PreparedState LookAtPrepared(const PrepareOptions& options, const Tokenizer& tokenizer);

}  // namespace syntra
