// SPDX-License-Identifier: Apache-2.0
// The pieces of a unigram model and their scores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_trie.h"

namespace syntra {

namespace tokenizer {
class ModelFile;
}

class PieceTable {
 public:
  static constexpr int32_t kNoPiece = ByteTrie::kNoKey;

  // Throws Error(kData) if there are more than 8,388,607 pieces.
  explicit PieceTable(const tokenizer::ModelFile& model);

  // Calls visit(length, id) for each beginning of `text` that a piece starts with, shortest first;
  // the id is kNoPiece where the beginning itself is no piece.
  template <typename Visit>
  void VisitBeginnings(std::string_view text, const Visit& visit) const {
    trie_.VisitNodes(text, visit);
  }

  // A user-defined piece scores about -0.1, so that it always wins; kNoPiece scores -infinity.
  double score(int32_t id) const { return scores_[id + 1]; }
  // The score of a character that no piece covers: 10 below the lowest score.
  float unknown_score() const { return unknown_score_; }
  // Lengths are in bytes.
  size_t length(int32_t id) const { return lengths_[id]; }
  size_t longest() const { return longest_; }

  int32_t unknown_id() const { return unknown_id_; }
  // Whether an unknown character becomes one piece for each of its bytes.
  bool has_bytes() const { return !byte_ids_.empty(); }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

  // The score of a segmentation that SentencePiece found, given as ids and the text of each.
  double ScoreOf(std::span<const int32_t> ids, std::span<const std::string> texts) const;

 private:
  ByteTrie trie_;
  std::vector<double> scores_;     // of kNoPiece, then of each id
  std::vector<uint32_t> lengths_;  // in bytes
  std::vector<int32_t> byte_ids_;  // 256 or none
  size_t longest_ = 0;
  float unknown_score_ = 0;
  int32_t unknown_id_ = 0;
};

// Bytes of the UTF-8 character that starts with `lead`; stray bytes count for one.
inline size_t CharacterBytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace syntra
