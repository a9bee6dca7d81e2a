// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_decoder.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace syntra {
namespace {

// A step reads every weight once, whatever the rows: more rows cost little until they fill the
// caches. Longer inputs get fewer, since each holds keys and values in every layer.
constexpr int64_t kMostRows = 32, kBatchTokens = 8192;
// Shapes are powers of two from here, so that few programs are made.
constexpr int64_t kShortestInput = 16;

int64_t PowerOfTwo(int64_t least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least)));
}

}  // namespace

SpanEnds::SpanEnds(std::span<const DecodeRequest* const> requests, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer) {
  for (const DecodeRequest* request : requests) {
    rows_.push_back({!request->sentinels.empty(), request->sentinels});
  }
}

bool SpanEnds::operator()(int64_t index, int32_t id) {
  // Rows that only fill the batch.
  if (index >= static_cast<int64_t>(rows_.size()) || id == tokenizer_.eos_id()) return true;
  Row& row = rows_[index];
  const bool is_sentinel =
      id >= tokenizer_.SentinelId(tokenizer_.extra_ids() - 1) && id <= tokenizer_.SentinelId(0);
  if (!row.by_sentinels || !is_sentinel) return false;
  if (row.missing.empty()) return true;
  row.missing.erase(id);
  return false;
}

BatchDecoder::BatchDecoder(Replica& replica, const Tokenizer& tokenizer, int64_t input_length,
                           int64_t target_length)
    : replica_(replica),
      tokenizer_(tokenizer),
      input_length_(input_length),
      target_length_(target_length) {
  CheckDecodes(replica.model());
}

GreedyDecoder& BatchDecoder::DecoderFor(int64_t rows, int64_t input_length) {
  const DecodeShape shape{rows, input_length, target_length_};
  if (!decoder_ || decoder_->shape() != shape) {
    decoder_.reset();  // first, so that the memory of both is never needed
    decoder_ = replica_.MakeDecoder(shape);
  }
  return *decoder_;
}

std::vector<std::vector<int32_t>> BatchDecoder::Decode(std::span<const DecodeRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Neighbours take as many steps, and read as much input.
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::pair(requests[i].ids.size(), requests[i].sentinels.size());
  });
  std::vector<std::vector<int32_t>> outputs(requests.size());
  for (size_t first = 0; first < order.size();) {
    const auto left = static_cast<int64_t>(order.size() - first);
    const int64_t most = std::clamp<int64_t>(kBatchTokens / input_length_, 1, kMostRows);
    const int64_t count = std::min(left, most);
    const auto longest = static_cast<int64_t>(requests[order[first + count - 1]].ids.size());
    const int64_t rows = std::min(PowerOfTwo(count), most);
    const int64_t length = std::min(std::max(PowerOfTwo(longest), kShortestInput), input_length_);
    std::vector<int32_t> ids(rows * length), segments(rows * length);
    std::vector<const DecodeRequest*> batch;
    for (int64_t row = 0; row < rows; ++row) {
      const DecodeRequest& request = requests[order[first + std::min(row, count - 1)]];
      std::ranges::copy(request.ids, ids.begin() + row * length);
      std::fill_n(segments.begin() + row * length, request.ids.size(), 1);
      if (row < count) batch.push_back(&request);
    }
    auto texts = DecoderFor(rows, length).Decode(ids, segments, SpanEnds(batch, tokenizer_));
    for (int64_t row = 0; row < count; ++row) outputs[order[first + row]] = std::move(texts[row]);
    first += count;
  }
  return outputs;
}

}  // namespace syntra
