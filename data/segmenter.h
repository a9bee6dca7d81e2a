// SPDX-License-Identifier: Apache-2.0
// Finds the best segmentation of a text into the pieces of a unigram model (the Viterbi algorithm).
//
// Segmentations whose scores differ only by rounding are decided by the order of additions and
// comparisons. That order is fixed here, so that ids do not depend on the linked SentencePiece
// library. Scores are added from left to right in float. Each new sum is compared, in double, with
// the best float sum that ends at the same place. Of equal sums the first wins; pieces that begin
// further left come first. SentencePiece 0.1.97 does the same; later versions do not.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "data/piece_table.h"

namespace syntra {

// A segmentation that can be reused after any text before it.
struct Segmentation {
  std::vector<int32_t> ids;
  bool has_unknown = false;  // a character that no piece covers
  // Score of the best segmentation minus that of the second best; infinite if there is only one.
  double margin = std::numeric_limits<double>::infinity();
  int32_t characters = 0;  // the largest possible number of pieces
};

// Reuses its buffers, so each thread needs its own.
class Segmenter {
 public:
  explicit Segmenter(std::shared_ptr<const PieceTable> pieces);

  const PieceTable& pieces() const { return *pieces_; }

  // Appends the ids of `text`, which must be in normal form. `*sum` is the score of the text before
  // it; the score of `text` is added. A run of unknown characters gives one id or, if the model has
  // byte pieces, the ids of its bytes. Takes 4 bytes of memory for each byte of text.
  void Segment(std::string_view text, float* sum, std::vector<int32_t>* ids);

  // The segmentation of a word for a score of 0 before it. Takes 20 bytes for each byte of text.
  void SegmentToKeep(std::string_view text, Segmentation* result);

 private:
  // Fills last_, and best_ and second_ if a margin is wanted; returns the score of the text, added
  // to `start`.
  template <bool kWithMargin>
  float FindBest(std::string_view text, float start);
  size_t Bytes(int32_t piece) const { return piece < 0 ? -piece : pieces_->length(piece); }
  // Overwrites last_.
  void AppendIds(std::string_view text, std::vector<int32_t>* ids);

  std::shared_ptr<const PieceTable> pieces_;
  // The last piece of the best segmentation up to each place in the text: an id, or -n for an
  // unknown character of n bytes.
  std::vector<int32_t> last_;
  std::vector<float> sums_;            // ring buffer: scores at the places that one piece can reach
  std::vector<double> best_, second_;  // the two best sums at every place, in double
};

}  // namespace syntra
