// SPDX-License-Identifier: Apache-2.0
// From corpus files to token shards: the deterministic half of the pipeline, done once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/bad_record.h"
#include "data/corpus_index.h"
#include "data/tokenizer.h"

namespace syntra {

struct PrepareProgress {
  int64_t shards_done = 0, shards_total = 0;
  int64_t documents = 0, tokens = 0, text_bytes = 0;  // of shards made by this process
  // While waiting for another process's shard: changes as that process works on it.
  int64_t sign_of_life = 0;
  friend bool operator==(const PrepareProgress&, const PrepareProgress&) = default;
};

struct PrepareOptions {
  std::vector<std::string> patterns;
  Path directory;
  std::string text_field = "text";
  BadRecordPolicy on_bad_record;
  // Called from the calling thread each few hundred documents, and more often while waiting for
  // shards that other processes make; may throw to stop.
  std::function<void(const PrepareProgress&)> on_progress;
  // For a run that learned from these shards: where a corpus file has other bytes now, its shard is
  // only replaced by one that says the same (the file was compressed anew); else
  // Error(kCheckpoint), and the shard stays.
  bool keeps_content = false;
};

struct PrepareResult {
  CorpusIndex index;
  int64_t built = 0;  // shards made by this process
  int64_t kept = 0;   // shards found finished, or made by another process meanwhile
};

// A corpus file and the token shard that is made of it.
struct ShardTask {
  Path source, shard;
};
// All of them, in order. Shards are named after their sources, so a corpus may be moved without
// being prepared again. Throws Error(kData) if patterns match nothing or two files have one name.
std::vector<ShardTask> ShardTasks(const PrepareOptions& options);

// Makes one token shard for each corpus file in `directory`, then the index, with all threads of
// the pool; the shards do not depend on their number. Finished shards that verify and were made
// from the same bytes, tokenizer and settings are kept, unread if neither file has changed since
// the index was written (README.md); any number of processes may work on one directory at once;
// after a crash, calling it again goes on with the unfinished shards. Long work is logged now and
// then.
PrepareResult PrepareCorpus(const PrepareOptions& options, const Tokenizer& tokenizer);

}  // namespace syntra
