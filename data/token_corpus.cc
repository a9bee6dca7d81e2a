// SPDX-License-Identifier: Apache-2.0
#include "data/token_corpus.h"

#include <algorithm>

#include "base/divide.h"
#include "base/error.h"
#include "data/corpus_index.h"
#include "data/tokenizer.h"

namespace syntra {

TokenCorpus::TokenCorpus(const PreparedCorpus& prepared, const Tokenizer& tokenizer,
                         const std::string& text_field, int64_t documents_per_group, bool verify)
    : documents_per_group_(documents_per_group) {
  const auto& [directory, index] = prepared;
  if (index.tokenizer != ToHex(tokenizer.digest())) {
    Fail(ExitCode::kData, "{} was prepared with another tokenizer than {}; prepare it again",
         directory.string(), tokenizer.path().string());
  }
  if (index.settings != ToHex(SettingsDigest(text_field, tokenizer))) {
    Fail(
        ExitCode::kData,
        "{} was prepared with another data.text_field or data.extra_ids, or by a program that gave "
        "the tokenizer's pieces other ids; prepare it again",
        directory.string());
  }
  int64_t document_ordinal = 0;
  for (const IndexEntry& entry : index.shards) {
    const Path path = directory / entry.file;
    if (!Exists(path)) {
      Fail(ExitCode::kData, "{} is missing; prepare the corpus again", path.string());
    }
    const TokenShard& shard = shards_.emplace_back(path, verify);
    if (ToHex(shard.digest()) != entry.digest) {
      Fail(ExitCode::kData, "{} is not the shard that the index lists; prepare the corpus again",
           path.string());
    }
    // A digest is no defence against a forged shard, and such an id would be read out of bounds.
    if (verify && shard.LargestToken() >= static_cast<uint32_t>(tokenizer.vocabulary_size())) {
      Fail(ExitCode::kData, "{} holds token id {}, outside the vocabulary of {}", path.string(),
           shard.LargestToken(), tokenizer.vocabulary_size());
    }
    const int64_t documents = shard.document_count();
    for (int64_t document = 0; document < documents; ++document) {
      const int64_t tokens = shard.DocumentLength(document);
      if (tokens <= kMaxDocumentTokens) continue;
      long_documents_.push_back({first_groups_.back() + document / documents_per_group, document,
                                 document_ordinal + document, tokens});
    }
    document_ordinal += documents;
    first_groups_.push_back(first_groups_.back() + DivideUp(documents, documents_per_group));
  }
  if (document_ordinal == 0) {
    Fail(ExitCode::kData, "{} holds no document", directory.string());
  }
}

Digest TokenCorpus::ContentDigest() const {
  std::string text;
  for (const TokenShard& shard : shards_) text += ToHex(shard.content()) + '\n';
  return DigestOf(text);
}

DocumentGroup TokenCorpus::Group(int64_t group) const {
  const auto above = std::upper_bound(first_groups_.begin(), first_groups_.end(), group);
  const auto shard = static_cast<size_t>(above - first_groups_.begin() - 1);
  SYNTRA_CHECK(group >= 0 && shard < shards_.size(), "group {} of {}", group, group_count());
  const int64_t first = (group - first_groups_[shard]) * documents_per_group_;
  const int64_t last = std::min(first + documents_per_group_, shards_[shard].document_count());
  return {&shards_[shard], first, last};
}

}  // namespace syntra
