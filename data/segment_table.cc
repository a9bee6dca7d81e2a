// SPDX-License-Identifier: Apache-2.0
#include "data/segment_table.h"

#include <algorithm>

#include "base/divide.h"
#include "base/error.h"
#include "core/random.h"

namespace syntra {

SegmentTable::SegmentTable(const TokenCorpus& corpus, const SegmentRule& rule, uint64_t seed,
                           uint64_t epoch)
    : corpus_(corpus), rule_(rule) {
  for (const LongDocument& document : corpus.long_documents()) {
    const int64_t count = DivideUp(document.tokens, kMaxDocumentTokens);
    const RandomKey key = DeriveKey(seed, "document chunk", epoch, document.ordinal);
    const int64_t begin =
        UniformBelow(RandomAt(key, 0)[0], static_cast<uint32_t>(count)) * kMaxDocumentTokens;
    chunks_.push_back({document.group, document.document, begin,
                       std::min(kMaxDocumentTokens, document.tokens - begin)});
  }
  const int64_t groups = corpus.group_count();
  full_before_.reserve(groups + 1);
  short_before_.reserve(groups + 1);
  full_before_.push_back(0);
  short_before_.push_back(0);
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t tokens = TokensOfGroup(group);
    full_before_.push_back(full_before_.back() + tokens / rule.tokens);
    short_before_.push_back(short_before_.back() + (tokens % rule.tokens != 0));
  }
}

std::span<const SegmentTable::Chunk> SegmentTable::ChunksOf(int64_t group) const {
  const auto before = [](const Chunk& chunk, int64_t value) { return chunk.group < value; };
  const auto first = std::lower_bound(chunks_.begin(), chunks_.end(), group, before);
  const auto last = std::lower_bound(first, chunks_.end(), group + 1, before);
  return {first, last};
}

int64_t SegmentTable::TokensOfGroup(int64_t group) const {
  const DocumentGroup documents = corpus_.Group(group);
  int64_t tokens = documents.token_count();
  if (rule_.document_end) tokens += documents.last_document - documents.first_document;
  for (const Chunk& chunk : ChunksOf(group)) {
    tokens -= documents.shard->DocumentLength(chunk.document) - chunk.tokens;
  }
  return tokens;
}

int64_t SegmentTable::FullSegment(int64_t i) const {
  const auto above = std::upper_bound(full_before_.begin(), full_before_.end(), i);
  const int64_t group = above - full_before_.begin() - 1;
  return i + short_before_[group];
}

int64_t SegmentTable::ShortSegment(int64_t i) const {
  const auto above = std::upper_bound(short_before_.begin(), short_before_.end(), i);
  const int64_t group = above - short_before_.begin() - 1;
  return i + full_before_[group + 1];
}

SegmentTable::Address SegmentTable::AddressOf(int64_t segment) const {
  SYNTRA_CHECK(segment >= 0 && segment < segment_count(), "segment {} of {}", segment,
               segment_count());
  // The last group whose first segment is not after `segment`.
  int64_t low = 0, high = static_cast<int64_t>(full_before_.size()) - 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (full_before_[middle] + short_before_[middle] <= segment ? low : high) = middle;
  }
  return {low, segment - full_before_[low] - short_before_[low]};
}

int64_t SegmentTable::LengthOf(int64_t segment) const {
  const Address address = AddressOf(segment);
  const int64_t full = full_before_[address.group + 1] - full_before_[address.group];
  if (address.index < full) return rule_.tokens;
  return TokensOfGroup(address.group) - full * rule_.tokens;
}

// Calls on_tokens(shard, first, count) for the tokens of a segment, piece by piece, and on_end()
// for each document end. A long document is cut to its chunk.
template <typename OnTokens, typename OnEnd>
void SegmentTable::VisitPieces(int64_t segment, const OnTokens& on_tokens,
                               const OnEnd& on_end) const {
  const Address address = AddressOf(segment);
  const DocumentGroup group = corpus_.Group(address.group);
  const TokenShard& shard = *group.shard;
  const std::span<const Chunk> chunks = ChunksOf(address.group);
  const int64_t begin = address.index * rule_.tokens;
  int64_t left = LengthOf(segment);
  if (chunks.empty() && !rule_.document_end) {
    on_tokens(shard, group.token_begin() + begin, left);
    return;
  }
  int64_t position = 0;  // of the document's first token in the group
  size_t chunk = 0;
  for (int64_t document = group.first_document; document < group.last_document && left > 0;
       ++document) {
    int64_t first = shard.DocumentBegin(document), length = shard.DocumentLength(document);
    if (chunk < chunks.size() && chunks[chunk].document == document) {
      first += chunks[chunk].begin;
      length = chunks[chunk].tokens;
      ++chunk;
    }
    const int64_t skip = std::max<int64_t>(0, begin - position);
    if (skip < length) {
      const int64_t count = std::min(length - skip, left);
      on_tokens(shard, first + skip, count);
      left -= count;
    }
    position += length;
    if (!rule_.document_end) continue;
    if (position >= begin && left > 0) {
      on_end();
      --left;
    }
    ++position;
  }
  SYNTRA_CHECK(left == 0);
}

void SegmentTable::Prefetch(int64_t segment) const {
  const auto prefetch = [](const TokenShard& shard, int64_t first, int64_t count) {
    shard.Prefetch(first, count);
  };
  VisitPieces(segment, prefetch, [] {});
}

void SegmentTable::CopyTokens(int64_t segment, std::span<int32_t> tokens) const {
  SYNTRA_CHECK(std::ssize(tokens) == LengthOf(segment));
  size_t copied = 0;
  const auto copy = [&](const TokenShard& shard, int64_t first, int64_t count) {
    shard.CopyTokens(first, tokens.subspan(copied, count));
    copied += count;
  };
  VisitPieces(segment, copy, [&] { tokens[copied++] = *rule_.document_end; });
}

}  // namespace syntra
