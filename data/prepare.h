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
};

struct PrepareOptions {
  std::vector<std::string> patterns;
  Path directory;
  std::string text_field = "text";
  BadRecordPolicy on_bad_record;
  // Called from the calling thread each few hundred documents, and more often while waiting for
  // shards that other processes make; may throw to stop.
  std::function<void(const PrepareProgress&)> on_progress;
};

struct PrepareResult {
  CorpusIndex index;
  int64_t built = 0;  // shards made by this process
  int64_t kept = 0;   // shards found finished, or made by another process meanwhile
};

// Makes one token shard for each corpus file in `directory`, then the index, with all threads of
// the pool; the shards do not depend on their number. Finished shards that verify and were made
// from the same bytes, tokenizer and settings are kept, unread if neither file has changed since
// the index was written (README.md); any number of processes may work on one directory at once;
// after a crash, calling it again goes on with the unfinished shards. Long work is logged now and
// then.
PrepareResult PrepareCorpus(const PrepareOptions& options, const Tokenizer& tokenizer);

}  // namespace syntra
