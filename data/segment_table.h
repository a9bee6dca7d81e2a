// SPDX-License-Identifier: Apache-2.0
// The segments of one epoch: every group's documents joined and cut into pieces of equal length,
// the rest of a group kept as one shorter segment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/token_corpus.h"

namespace syntra {

// How text is cut.
struct SegmentRule {
  int64_t tokens = 0;                   // of a segment
  std::optional<int32_t> document_end;  // a token that is put after each document
};

class SegmentTable {
 public:
  // `seed` and `epoch` choose the chunks of documents longer than kMaxDocumentTokens and nothing
  // else. `corpus` must outlive the table.
  SegmentTable(const TokenCorpus& corpus, const SegmentRule& rule, uint64_t seed, uint64_t epoch);

  // Segments are numbered in corpus order; full and short ones also among their kind.
  int64_t segment_count() const { return full_count() + short_count(); }
  int64_t full_count() const { return full_before_.back(); }
  int64_t short_count() const { return short_before_.back(); }
  int64_t FullSegment(int64_t i) const;
  int64_t ShortSegment(int64_t i) const;
  // In tokens.
  int64_t LengthOf(int64_t segment) const;
  // Begins to read what CopyTokens needs, and does not wait for the disk.
  void Prefetch(int64_t segment) const;
  // Fills `tokens`, which must have LengthOf(segment) elements.
  void CopyTokens(int64_t segment, std::span<int32_t> tokens) const;

 private:
  struct Address {
    int64_t group;
    int64_t index;  // in the group
  };
  // The part of a long document that this epoch uses.
  struct Chunk {
    int64_t group, document;
    int64_t begin, tokens;  // relative to the document
  };

  Address AddressOf(int64_t segment) const;
  int64_t TokensOfGroup(int64_t group) const;
  std::span<const Chunk> ChunksOf(int64_t group) const;
  template <typename OnTokens, typename OnEnd>
  void VisitPieces(int64_t segment, const OnTokens& on_tokens, const OnEnd& on_end) const;

  const TokenCorpus& corpus_;
  SegmentRule rule_;
  std::vector<Chunk> chunks_;         // in corpus order
  std::vector<int64_t> full_before_;  // full segments before each group, then the total
  std::vector<int64_t> short_before_;
};

}  // namespace syntra
