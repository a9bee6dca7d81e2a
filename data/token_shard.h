// SPDX-License-Identifier: Apache-2.0
// A token shard: the token ids of one corpus file, memory-mapped. data/README.md gives the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/staged_file.h"

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
  friend bool operator==(const ShardFacts&, const ShardFacts&) = default;
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

class TokenShard {
 public:
  // Throws ShardError: not a shard, another version, truncated, contradictory counts or (with
  // `verify`) a wrong digest.
  // `after_block` is called now and then while the digest is computed.
  explicit TokenShard(const Path& path, bool verify = true,
                      const std::function<void()>& after_block = {});

  const ShardFacts& facts() const { return facts_; }
  const Digest& digest() const { return digest_; }
  // Digest of the tokens and of the offsets of the documents. It is equal for equal texts,
  // tokenizers and settings, however the corpus file is compressed. Computed only with `verify`.
  const Digest& content() const { return content_; }
  const Path& path() const { return map_.path(); }
  int64_t document_count() const { return static_cast<int64_t>(facts_.documents); }
  int64_t token_count() const { return static_cast<int64_t>(facts_.tokens); }
  // Index of the first token of document i; i = document_count() gives token_count().
  int64_t DocumentBegin(int64_t i) const { return static_cast<int64_t>(offsets_[i]); }
  int64_t DocumentLength(int64_t i) const { return DocumentBegin(i + 1) - DocumentBegin(i); }
  // The largest id in the shard, as an unsigned number; 0 if it has no tokens. Reads all tokens.
  uint32_t LargestToken() const;
  // Copies tokens [begin, begin + out.size()) to `out`.
  void CopyTokens(int64_t begin, std::span<int32_t> out) const;

 private:
  MappedFile map_;
  ShardFacts facts_;
  Digest digest_{}, content_{};
  uint32_t token_bytes_ = 2;
  const std::byte* tokens_ = nullptr;
  const uint64_t* offsets_ = nullptr;
};

}  // namespace syntra
