// SPDX-License-Identifier: Apache-2.0
#include "data/segmenter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace syntra {
namespace {

constexpr int32_t kUnreached = std::numeric_limits<int32_t>::min();
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr size_t kMostKept = size_t{1} << 18;  // a larger last_ is freed after use

}  // namespace

Segmenter::Segmenter(std::shared_ptr<const PieceTable> pieces)
    : pieces_(std::move(pieces)),
      sums_(std::bit_ceil(std::max<size_t>(pieces_->longest(), 4) + 1)) {}

template <bool kWithMargin>
float Segmenter::FindBest(std::string_view text, float start) {
  last_.assign(text.size() + 1, kUnreached);
  if constexpr (kWithMargin) {
    best_.assign(text.size() + 1, kNone);
    second_.assign(text.size() + 1, kNone);
    best_[0] = 0;
  }
  const size_t mask = sums_.size() - 1;
  sums_[0] = start;
  const auto offer = [&](size_t at, size_t to, double score, int32_t piece) {
    if constexpr (kWithMargin) {
      const double best = best_[at] + score, second = second_[at] + score;
      second_[to] = std::max(std::min(best_[to], best), std::max(second_[to], second));
      best_[to] = std::max(best_[to], best);
    }
    const double sum = score + sums_[at & mask];
    // Without a branch, since none could be foretold.
    const bool wins = (last_[to] == kUnreached) | (sum > sums_[to & mask]);
    last_[to] = wins ? piece : last_[to];
    sums_[to & mask] = wins ? static_cast<float>(sum) : sums_[to & mask];
  };
  for (size_t at = 0; at < text.size();) {
    const size_t character = std::min(CharacterBytes(text[at]), text.size() - at);
    bool has_single = false;
    pieces_->VisitPrefixes(text.substr(at), [&](size_t length, int32_t id) {
      offer(at, at + length, pieces_->score(id), id);
      has_single |= length == character;
    });
    if (!has_single) {
      offer(at, at + character, pieces_->unknown_score(), -static_cast<int32_t>(character));
    }
    at += character;
  }
  return sums_[text.size() & mask];
}

void Segmenter::AppendIds(std::string_view text, std::vector<int32_t>* ids) const {
  // Goes from back to front twice: first it counts, so that `ids` takes no more memory than needed.
  const auto visit = [&](const auto& emit) {
    bool unknown_behind = false;
    for (size_t at = text.size(); at > 0; at -= Bytes(last_[at])) {
      const int32_t piece = last_[at];
      if (piece >= 0) {
        emit(piece);
      } else if (pieces_->has_bytes()) {
        for (size_t i = 0; i < Bytes(piece); ++i) {
          emit(pieces_->byte_id(static_cast<uint8_t>(text[at - 1 - i])));
        }
      } else if (!unknown_behind) {
        emit(pieces_->unknown_id());
      }
      unknown_behind = piece < 0;
    }
  };
  size_t count = 0;
  visit([&](int32_t) { ++count; });
  ids->resize(ids->size() + count);
  auto to = ids->end();
  visit([&](int32_t id) { *--to = id; });
}

void Segmenter::Segment(std::string_view text, float* sum, std::vector<int32_t>* ids) {
  *sum = FindBest<false>(text, *sum);
  AppendIds(text, ids);
  if (last_.capacity() > kMostKept) std::vector<int32_t>().swap(last_);
}

void Segmenter::SegmentToKeep(std::string_view text, Segmentation* result) {
  FindBest<true>(text, 0);
  result->ids.clear();
  AppendIds(text, &result->ids);
  result->has_unknown = false;
  for (size_t at = text.size(); at > 0; at -= Bytes(last_[at]))
    result->has_unknown |= last_[at] < 0;
  result->characters = 0;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text[at])) ++result->characters;
  result->margin = best_[text.size()] - second_[text.size()];
}

}  // namespace syntra
