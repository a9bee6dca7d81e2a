// SPDX-License-Identifier: Apache-2.0
// INDEX.json: the list of the token shards of a prepared corpus, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "data/token_shard.h"
#include "data/tokenizer.h"

namespace syntra {

inline constexpr char kCorpusIndexName[] = "INDEX.json";

struct IndexEntry {
  std::string file;    // name of the token shard in the directory
  std::string source;  // path of the corpus file, for people
  int64_t documents = 0, tokens = 0, empty_documents = 0, bad_records = 0, source_bytes = 0;
  std::string digest;  // of the token shard, in hexadecimal
  // ChangeTime of the token shard and of the corpus file, in nanoseconds. The shard is checked
  // again only if one of them differs. source_time 0: it was too recent to rely on.
  int64_t file_time = 0, source_time = 0;
  friend bool operator==(const IndexEntry&, const IndexEntry&) = default;
};

struct CorpusIndex {
  std::string tokenizer;  // digest of the model file, in hexadecimal
  std::string settings;   // digest of the other settings
  std::vector<IndexEntry> shards;

  int64_t documents() const;
  int64_t tokens() const;
  int64_t empty_documents() const;
  int64_t bad_records() const;
  // About how much of the shards is read when they are opened: offsets and checksums.
  double opened_bytes() const;
  // Digest of the shards' digests in order. It also changes if a corpus file was only recompressed.
  Digest DataDigest() const;
  friend bool operator==(const CorpusIndex&, const CorpusIndex&) = default;
};

// Token shards in a directory, and which of them, in which order, are the corpus. Where several
// configurations share the directory, its INDEX.json may list those of another one.
struct PreparedCorpus {
  Path directory;
  CorpusIndex index;
};

// Digest of everything but source and tokenizer that decides a shard's tokens.
Digest SettingsDigest(const std::string& text_field, const Tokenizer& tokenizer);

// The index entry of `shard`, without the two times, which the caller fills in.
IndexEntry EntryOf(const ShardSummary& shard, const Path& source);
// Replaces the index durably. Throws Error(kResources).
void WriteIndex(const Path& directory, const CorpusIndex& index);
// Throws Error(kData) if the index is missing or malformed.
CorpusIndex ReadIndex(const Path& directory);

}  // namespace syntra
