// SPDX-License-Identifier: Apache-2.0
#include "data/segmenter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace syntra {
namespace {

// The sum at a place that no segmentation has reached.
constexpr float kUnreached = -std::numeric_limits<float>::infinity();
constexpr int32_t kUnknownByte = -1;  // in last_
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr size_t kMostKept = size_t{1} << 18;  // a larger last_ is freed after use

}  // namespace

Segmenter::Segmenter(std::shared_ptr<const PieceTable> pieces)
    : pieces_(std::move(pieces)),
      sums_(std::bit_ceil(std::max<size_t>(pieces_->longest(), 4) + 1)) {}

template <bool kWithMargin>
float Segmenter::FindBest(std::string_view text, float start) {
  last_.assign(text.size() + 1, kUnknownByte);
  if constexpr (kWithMargin) {
    best_.assign(text.size() + 1, kNone);
    second_.assign(text.size() + 1, kNone);
    best_[0] = 0;
  }
  const size_t mask = sums_.size() - 1;
  std::ranges::fill(sums_, kUnreached);
  sums_[0] = start;
  for (size_t at = 0; at < text.size();) {
    const double before = sums_[at & mask];
    const auto offer = [&](size_t length, double score, int32_t piece) {
      const size_t to = at + length;
      if constexpr (kWithMargin) {
        const double best = best_[at] + score, second = second_[at] + score;
        second_[to] = std::max(std::min(best_[to], best), std::max(second_[to], second));
        best_[to] = std::max(best_[to], best);
      }
      // Without a branch, since none could be foretold. Rounding keeps the order, so the larger of
      // the rounded sums is that of the winner.
      float& most = sums_[to & mask];
      const double sum = score + before;
      const int32_t wins = -static_cast<int32_t>(sum > most);
      last_[to] ^= (last_[to] ^ piece) & wins;
      most = std::max(most, static_cast<float>(sum));
    };
    const size_t character = std::min(CharacterBytes(text[at]), text.size() - at);
    bool has_single = false;
    pieces_->VisitBeginnings(text.substr(at), [&](size_t length, int32_t id) {
      offer(length, pieces_->score(id), id);
      has_single |= (length == character) & (id != PieceTable::kNoPiece);
    });
    if (!has_single) {
      offer(character, pieces_->unknown_score(), -static_cast<int32_t>(character));
    }
    for (const size_t end = at + character; at < end; ++at) sums_[at & mask] = kUnreached;
  }
  return sums_[text.size() & mask];
}

void Segmenter::AppendIds(std::string_view text, std::vector<int32_t>* ids) {
  // From back to front. A piece gives no more ids than it has bytes, so they find room in last_
  // after the place that is read.
  size_t first = last_.size();
  const auto emit = [&](int32_t id) { last_[--first] = id; };
  bool unknown_behind = false;
  for (size_t at = text.size(); at > 0;) {
    const int32_t piece = last_[at];
    const size_t bytes = Bytes(piece);
    if (piece >= 0) {
      emit(piece);
    } else if (pieces_->has_bytes()) {
      for (size_t i = 0; i < bytes; ++i) {
        emit(pieces_->byte_id(static_cast<uint8_t>(text[at - 1 - i])));
      }
    } else if (!unknown_behind) {
      emit(pieces_->unknown_id());
    }
    unknown_behind = piece < 0;
    at -= bytes;
  }
  ids->insert(ids->end(), last_.begin() + static_cast<ptrdiff_t>(first), last_.end());
}

void Segmenter::Segment(std::string_view text, float* sum, std::vector<int32_t>* ids) {
  *sum = FindBest<false>(text, *sum);
  AppendIds(text, ids);
  if (last_.capacity() > kMostKept) std::vector<int32_t>().swap(last_);
}

void Segmenter::SegmentToKeep(std::string_view text, Segmentation* result) {
  FindBest<true>(text, 0);
  result->margin = best_[text.size()] - second_[text.size()];
  result->has_unknown = false;
  for (size_t at = text.size(); at > 0; at -= Bytes(last_[at]))
    result->has_unknown |= last_[at] < 0;
  result->characters = 0;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text[at])) ++result->characters;
  result->ids.clear();
  AppendIds(text, &result->ids);
}

}  // namespace syntra
