// SPDX-License-Identifier: Apache-2.0
// A token shard: the token ids of one corpus file, memory-mapped. data/README.md gives the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/staged_file.h"
#include "data/checksums.h"

namespace syntra {

// The origin and the contents of a shard. Equal inputs give byte-identical shards.
struct ShardFacts {
  uint64_t documents = 0;  // without empty ones
  uint64_t tokens = 0;
  uint64_t empty_documents = 0;  // without tokens; left out
  uint64_t bad_records = 0;      // skipped
  uint64_t source_bytes = 0;
  Digest source{};     // of the corpus file's bytes
  Digest tokenizer{};  // of the model file's bytes
  Digest settings{};   // of everything else that decides the tokens
};

// Writes a shard sequentially to a temporary file, syncs it and renames it to `path`.
class TokenShardWriter {
 public:
  // Ids are stored in 2 bytes if `vocabulary_size` <= 65536, else in 4.
  TokenShardWriter(const Path& path, int64_t vocabulary_size);

  // Documents without tokens are counted, not stored.
  void AddDocument(std::span<const int32_t> tokens);
  // Fills in the numbers of documents and tokens in `facts` and finishes the file. Returns the
  // shard's digest.
  Digest Commit(ShardFacts* facts);

 private:
  void WriteBytes(std::span<const std::byte> bytes);
  void FlushTokens();
  void Pad();

  StagedFile file_;
  DigestStream digest_;
  ChecksumWriter checksums_;
  uint32_t token_bytes_;
  uint64_t written_ = 0;
  uint64_t tokens_ = 0, empty_ = 0;
  int64_t vocabulary_size_;
  std::vector<std::byte> pending_;
  std::vector<uint64_t> offsets_{0};
};

// A file that is no token shard that this program can read.
class ShardError : public Error {
 public:
  ShardError(const Path& path, const std::string& reason);
  // The file and the reason, without what to do about them.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// What the end of a shard says about it.
struct ShardSummary {
  Path path;
  ShardFacts facts;
  Digest digest{};  // of everything before the digest
  // That of the tokens and of the documents' offsets. It is equal for equal texts, tokenizers and
  // settings, however the corpus file is compressed.
  Digest content{};
};
// Reads little more than the end of the file. Throws ShardError: not a shard, another version,
// truncated, contradictory counts, or damaged there.
ShardSummary ReadShardSummary(const Path& path);

// Everything that is read is checked first: the end and the offsets when the shard is opened, and
// tokens each time when they are copied.
class TokenShard {
 public:
  // Token ids must be below `vocabulary_size`. Throws ShardError.
  TokenShard(const Path& path, int64_t vocabulary_size);

  // Throws ShardError if a token is damaged. Reads the whole file; `after_block` is called now and
  // then.
  void Verify(const std::function<void()>& after_block = {}) const;

  const ShardSummary& summary() const { return summary_; }
  int64_t document_count() const { return static_cast<int64_t>(summary_.facts.documents); }
  int64_t token_count() const { return static_cast<int64_t>(summary_.facts.tokens); }
  // Index of the first token of document i; i = document_count() gives token_count().
  int64_t DocumentBegin(int64_t i) const { return static_cast<int64_t>(offsets_[i]); }
  int64_t DocumentLength(int64_t i) const { return DocumentBegin(i + 1) - DocumentBegin(i); }
  // Begins to read the bytes that CopyTokens needs for tokens [begin, begin + count), and does not
  // wait for the disk.
  void Prefetch(int64_t begin, int64_t count) const;
  // Copies tokens [begin, begin + out.size()) to `out`. Throws ShardError if one is damaged or not
  // in the vocabulary. May be called from several threads.
  void CopyTokens(int64_t begin, std::span<int32_t> out) const;

 private:
  // Where in the file tokens are: the first byte, and the one after the last.
  std::pair<size_t, size_t> BytesOf(int64_t begin, int64_t count) const;
  void CheckBytes(size_t begin, size_t end) const;

  MappedFile map_;
  int64_t vocabulary_size_;
  std::optional<Checksums> checksums_;
  ShardSummary summary_;
  uint32_t token_bytes_ = 2;
  const uint64_t* offsets_ = nullptr;
};

}  // namespace syntra
