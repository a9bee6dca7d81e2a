// SPDX-License-Identifier: Apache-2.0
// A prepared corpus, opened: its token shards in order, as groups of consecutive documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.h"
#include "data/token_shard.h"

namespace syntra {

class Tokenizer;
struct PreparedCorpus;

// Longer documents take part with one chunk of this many tokens, redrawn each epoch.
inline constexpr int64_t kMaxDocumentTokens = 65536;

// Documents [first_document, last_document) of a shard; all but a shard's last group are full.
struct DocumentGroup {
  const TokenShard* shard = nullptr;
  int64_t first_document = 0, last_document = 0;

  int64_t token_begin() const { return shard->DocumentBegin(first_document); }
  int64_t token_count() const { return shard->DocumentBegin(last_document) - token_begin(); }
};

// A document of more than kMaxDocumentTokens tokens.
struct LongDocument {
  int64_t group = 0;
  int64_t document = 0;  // in its shard
  int64_t ordinal = 0;   // in the corpus
  int64_t tokens = 0;
};

class TokenCorpus {
 public:
  // Throws Error(kData) if the corpus was prepared with another tokenizer or text field, if a shard
  // is missing, damaged or not the one that the index lists, or if there is no document. Reads
  // only where the documents of a shard begin; tokens are checked when they are used.
  TokenCorpus(const PreparedCorpus& prepared, const Tokenizer& tokenizer,
              const std::string& text_field, int64_t documents_per_group);

  // Identifies what the corpus says, shard by shard (ShardSummary::content).
  Digest ContentDigest() const;
  int64_t group_count() const { return first_groups_.back(); }
  DocumentGroup Group(int64_t group) const;
  // In corpus order.
  const std::vector<LongDocument>& long_documents() const { return long_documents_; }

 private:
  int64_t documents_per_group_;
  std::vector<TokenShard> shards_;
  std::vector<int64_t> first_groups_{0};  // of each shard, then the total
  std::vector<LongDocument> long_documents_;
};

}  // namespace syntra
