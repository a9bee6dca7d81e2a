// SPDX-License-Identifier: Apache-2.0
// Makes token shards from corpus files. This is done once for each corpus.
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
  int64_t documents = 0, tokens = 0;  // of shards made by this process
  // While this process waits for a shard of another one: changes as the other process works.
  int64_t sign_of_life = 0;
  int64_t compared_blocks = 0;  // of files whose bytes are compared with their shards
  friend bool operator==(const PrepareProgress&, const PrepareProgress&) = default;
};

struct PrepareOptions {
  std::vector<std::string> patterns;
  std::string field = "data.train";  // what names the patterns in the configuration
  Path directory;
  std::string text_field = "text";
  BadRecordPolicy on_bad_record;
  // Called on the caller's thread: after each block of documents (1,000, or 4 MiB of text), every
  // few MB while a file is compared with its shard, and more often while waiting for another
  // process. May throw to stop.
  std::function<void(const PrepareProgress&)> on_progress;
  // Set for a run that has already trained on these shards. If the bytes of a corpus file have
  // changed, its shard is replaced only by one with the same content (when the file was merely
  // recompressed). Otherwise the shard stays and Error(kCheckpoint) is thrown.
  bool keeps_content = false;
  // Reads all corpus files and shards, even if neither has changed since the index was written.
  bool reads_everything = false;
  // False for a command that only reads: a shard that cannot be used may belong to a run. It stays,
  // and Error(kConfig) is thrown.
  bool replaces_shards = true;
};

struct PrepareResult : PreparedCorpus {
  int64_t built = 0;  // shards made by this process
  int64_t kept = 0;   // shards that existed, or that another process made meanwhile
};

// A corpus file and the path of its token shard.
struct ShardTask {
  Path source, shard;
};
// All corpus files with their shards, in order. Shards have the names of their sources, so a corpus
// can be moved without being prepared again. Throws Error(kData) if a pattern matches nothing, two
// files have the same name or a name is not UTF-8.
std::vector<ShardTask> ShardTasks(const PrepareOptions& options);

// Throws Error(kData) about the files that `field` names, none of which has a document.
[[noreturn]] void FailWithoutDocuments(const std::string& field, const Path& first, int64_t files);

// Makes one token shard in `directory` for each corpus file, then writes the index. Uses all
// threads of the pool; the shards do not depend on their number. Keeps finished shards that verify
// and were made from the same bytes, tokenizer and settings; does not even read them if neither
// file has changed since the index was written (README.md). Several processes may work on one
// directory at once. After a crash, another call continues with the unfinished shards. Logs its
// progress every 10 seconds.
PrepareResult PrepareCorpus(const PrepareOptions& options, const Tokenizer& tokenizer);

}  // namespace syntra
