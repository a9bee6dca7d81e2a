// The pieces of a unigram model as a byte trie, and the best segmentation of a text into them, step
// for step as SentencePiece 0.1.97 computes it: scores are summed in float from left to right, and
// the first of two equal sums wins. So equal starting scores give equal ids.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace syntra {

struct Segmentation {
  std::vector<int32_t> ids;   // runs of unknown characters give one id
  std::vector<float> scores;  // one for each step, in order, runs not merged
  // Score of the best segmentation less that of the second best; infinite if there is only one.
  double margin = std::numeric_limits<double>::infinity();
  int32_t characters = 0;  // the longest possible number of steps
};

class PieceTable {
 public:
  void Add(std::string_view piece, int32_t id, float score);
  // After the last Add: unknown characters get `unknown_id`, at 10 below the lowest score.
  void Finish(int32_t unknown_id);

  float unknown_score() const { return unknown_score_; }

  // Segments `text`, well-formed UTF-8, for a running score of `start`. Margins take a second pass.
  void Segment(std::string_view text, float start, bool with_margin, Segmentation* result);

 private:
  struct Node {
    float score = 0;
    int32_t begin = -1, id = -1;
  };
  // Calls visit(length, id) for each piece that `text` starts with.
  template <typename Visit>
  void VisitPrefixes(std::string_view text, const Visit& visit) const;
  uint32_t Child(uint32_t node, uint8_t byte) const;
  double Margin(std::string_view text);
  void Grow();

  // Open addressing from (node << 8 | byte) + 1 to the child; 0 is empty.
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> children_;
  std::vector<int32_t> id_of_node_{-1};
  std::vector<float> score_of_id_;
  float lowest_ = std::numeric_limits<float>::max();
  float unknown_score_ = 0;
  int32_t unknown_id_ = 0;
  std::vector<Node> nodes_;
  std::vector<double> best_, second_;
  std::vector<int32_t> path_;
};

}  // namespace syntra
