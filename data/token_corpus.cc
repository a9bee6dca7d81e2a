// SPDX-License-Identifier: Apache-2.0
#include "data/token_corpus.h"

#include <algorithm>
#include <optional>

#include "base/divide.h"
#include "base/error.h"
#include "core/thread.h"
#include "data/corpus_index.h"
#include "data/tokenizer.h"

namespace syntra {
namespace {

struct OpenedShard {
  std::optional<TokenShard> tokens;
  std::vector<int64_t> long_documents;
};

OpenedShard OpenShard(const Path& path, const std::string& digest, const Tokenizer& tokenizer) {
  if (!Exists(path)) {
    Fail(ExitCode::kData, "{} is missing; prepare the corpus again", path.string());
  }
  OpenedShard opened{TokenShard(path, tokenizer.vocabulary_size()), {}};
  if (ToHex(opened.tokens->summary().digest) != digest) {
    Fail(ExitCode::kData,
         "{} is not the shard that the index lists; prepare the corpus again, and if that does not "
         "help, compare the corpus files that the hosts of the ranks see",
         path.string());
  }
  for (int64_t i = 0; i < opened.tokens->document_count(); ++i) {
    if (opened.tokens->DocumentLength(i) > kMaxDocumentTokens) opened.long_documents.push_back(i);
  }
  return opened;
}

}  // namespace

TokenCorpus::TokenCorpus(const PreparedCorpus& prepared, const Tokenizer& tokenizer,
                         const std::string& text_field, int64_t documents_per_group)
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
  std::vector<OpenedShard> opened(index.shards.size());
  ParallelTasks(std::ssize(opened), [&](int64_t i) {
    opened[i] = OpenShard(directory / index.shards[i].file, index.shards[i].digest, tokenizer);
  });
  int64_t document_ordinal = 0;
  for (OpenedShard& shard : opened) {
    for (const int64_t document : shard.long_documents) {
      long_documents_.push_back({first_groups_.back() + document / documents_per_group, document,
                                 document_ordinal + document,
                                 shard.tokens->DocumentLength(document)});
    }
    const int64_t documents = shard.tokens->document_count();
    document_ordinal += documents;
    first_groups_.push_back(first_groups_.back() + DivideUp(documents, documents_per_group));
    shards_.push_back(std::move(*shard.tokens));
  }
  if (document_ordinal == 0) {
    Fail(ExitCode::kData, "{} holds no document", directory.string());
  }
}

Digest TokenCorpus::ContentDigest() const {
  std::string text;
  for (const TokenShard& shard : shards_) text += ToHex(shard.summary().content) + '\n';
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
