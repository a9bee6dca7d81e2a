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

float Segmenter::FindBest(std::string_view text, float start) {
  last_.assign(text.size() + 1, kUnreached);
  const size_t mask = sums_.size() - 1;
  sums_[0] = start;
  const auto offer = [&](size_t to, double sum, int32_t piece) {
    if (last_[to] != kUnreached && !(sum > sums_[to & mask])) return;
    last_[to] = piece;
    sums_[to & mask] = static_cast<float>(sum);
  };
  for (size_t at = 0; at < text.size();) {
    const float here = sums_[at & mask];
    const size_t character = std::min(CharacterBytes(text[at]), text.size() - at);
    bool has_single = false;
    pieces_->VisitPrefixes(text.substr(at), [&](size_t length, int32_t id) {
      offer(at + length, pieces_->score(id) + here, id);
      has_single |= length == character;
    });
    if (!has_single) {
      offer(at + character, pieces_->unknown_score() + here, -static_cast<int32_t>(character));
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
  *sum = FindBest(text, *sum);
  AppendIds(text, ids);
  if (last_.capacity() > kMostKept) std::vector<int32_t>().swap(last_);
}

void Segmenter::SegmentToKeep(std::string_view text, Segmentation* result) {
  FindBest(text, 0);
  result->ids.clear();
  AppendIds(text, &result->ids);
  result->scores.clear();
  for (size_t at = text.size(); at > 0; at -= Bytes(last_[at])) {
    const int32_t piece = last_[at];
    result->scores.push_back(piece < 0 ? pieces_->unknown_score()
                                       : static_cast<float>(pieces_->score(piece)));
  }
  std::ranges::reverse(result->scores);
  result->characters = 0;
  for (size_t at = 0; at < text.size(); at += CharacterBytes(text[at])) ++result->characters;
  result->margin = Margin(text);
}

// The two best sums at every place, in double.
double Segmenter::Margin(std::string_view text) {
  best_.assign(text.size() + 1, kNone);
  second_.assign(text.size() + 1, kNone);
  best_[0] = 0;
  const auto offer = [&](size_t to, double sum) {
    if (sum > best_[to]) std::swap(sum, best_[to]);
    second_[to] = std::max(second_[to], sum);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t character = std::min(CharacterBytes(text[at]), text.size() - at);
    bool has_single = false;
    const auto extend = [&](size_t length, double score) {
      offer(at + length, best_[at] + score);
      offer(at + length, second_[at] + score);
    };
    pieces_->VisitPrefixes(text.substr(at), [&](size_t length, int32_t id) {
      extend(length, pieces_->score(id));
      has_single |= length == character;
    });
    if (!has_single) extend(character, pieces_->unknown_score());
    at += character;
  }
  return best_[text.size()] - second_[text.size()];
}

}  // namespace syntra
