// SPDX-License-Identifier: Apache-2.0
// The best segmentation of a text into the pieces of a unigram model. What is best is defined here,
// so that ids do not depend on the SentencePiece library that the program is linked with: scores
// are added from left to right in float; each sum is compared in double with the best that ends at
// the same place, in float; and the first of equals wins, where the pieces that begin further left
// come first. This is the order of SentencePiece 0.1.97. Later versions add and compare otherwise,
// which decides between segmentations whose scores are equal but for rounding.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "data/piece_table.h"

namespace syntra {

// A segmentation that is kept, to be used at other running scores.
struct Segmentation {
  std::vector<int32_t> ids;
  std::vector<float> scores;  // one for each step, in order; ids can be fewer or more
  // Score of the best segmentation less that of the second best; infinite if there is only one.
  double margin = std::numeric_limits<double>::infinity();
  int32_t characters = 0;  // the longest possible number of steps
};

// Keeps its buffers, so one object serves one thread.
class Segmenter {
 public:
  explicit Segmenter(std::shared_ptr<const PieceTable> pieces);

  const PieceTable& pieces() const { return *pieces_; }

  // Appends the ids of `text`, in normal form, for a running score of `*sum`, and moves that on. A
  // run of unknown characters gives one id or, if the model has bytes, those of its bytes. Takes 4
  // bytes of memory a byte of text.
  void Segment(std::string_view text, float* sum, std::vector<int32_t>* ids);

  // The segmentation for a running score of 0. For words: takes 24 bytes a byte of text.
  void SegmentToKeep(std::string_view text, Segmentation* result);

 private:
  // Fills steps_; returns the running score behind the text.
  float FindBest(std::string_view text, float start);
  size_t StepBytes(int32_t step) const { return step < 0 ? -step : pieces_->length(step); }
  void AppendIds(std::string_view text, std::vector<int32_t>* ids) const;
  double Margin(std::string_view text);

  std::shared_ptr<const PieceTable> pieces_;
  // For each place in the text the last step of the best segmentation up to there: a piece, or -n
  // for an unknown character of n bytes.
  std::vector<int32_t> steps_;
  std::vector<float> sums_;  // of the places that a piece can reach from here, in turn
  std::vector<double> best_, second_;
};

}  // namespace syntra
