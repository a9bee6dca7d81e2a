// SPDX-License-Identifier: Apache-2.0
#include "decode/requests.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace syntra {
namespace {

// A step reads every weight once, whatever the rows: more rows cost little until they fill the
// caches. Longer inputs get fewer, since each holds keys and values in every layer.
constexpr int64_t kMostRows = 32, kBatchTokens = 8192;
constexpr int64_t kShortestInput = 16, kShortestOutput = 4;

// The least power of two that holds `length`, at least `shortest` and at most `longest`.
int64_t RoundedLength(int64_t length, int64_t shortest, int64_t longest) {
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  return std::min(std::max(power, shortest), longest);
}

}  // namespace

bool EndsBefore(const DecodeRequest& request, const Tokenizer& tokenizer,
                std::span<const int32_t> prefix, int32_t id) {
  if (id == tokenizer.eos_id()) return true;
  const bool is_sentinel =
      id >= tokenizer.SentinelId(tokenizer.extra_ids() - 1) && id <= tokenizer.SentinelId(0);
  if (request.sentinels.empty() || !is_sentinel) return false;
  return std::ranges::all_of(request.sentinels, [&](int32_t sentinel) {
    return std::ranges::find(prefix, sentinel) != prefix.end();
  });
}

std::vector<RequestBatch> BatchesBySize(std::span<const RequestSize> sizes, int64_t input_length,
                                        int64_t output_length) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::tuple(sizes[i].rows, sizes[i].input, sizes[i].output);
  });
  std::vector<RequestBatch> batches;
  for (size_t first = 0; first < order.size();) {
    RequestBatch batch;
    const RequestSize& smallest = sizes[order[first]];
    const int64_t most = std::clamp<int64_t>(kBatchTokens / input_length, 1,
                                             std::max<int64_t>(1, kMostRows / smallest.rows));
    for (; first < order.size() && static_cast<int64_t>(batch.requests.size()) < most; ++first) {
      const RequestSize& size = sizes[order[first]];
      if (size.rows != smallest.rows) break;
      batch.requests.push_back(order[first]);
      batch.largest.input = size.input;
      batch.largest.output = std::max(batch.largest.output, size.output);
    }
    batch.inputs = RoundedLength(static_cast<int64_t>(batch.requests.size()), 1, most);
    batch.largest.rows = smallest.rows;
    batch.largest.input = RoundedLength(batch.largest.input, kShortestInput, input_length);
    batch.largest.output = RoundedLength(batch.largest.output, kShortestOutput, output_length);
    batches.push_back(std::move(batch));
  }
  return batches;
}

EncoderRows RowsOf(const RequestBatch& batch, std::span<const std::span<const int32_t>> inputs) {
  const int64_t length = batch.largest.input;
  EncoderRows rows{std::vector<int32_t>(batch.inputs * length),
                   std::vector<int32_t>(batch.inputs * length)};
  for (int64_t row = 0; row < batch.inputs; ++row) {
    const std::span<const int32_t> ids = inputs[std::min<size_t>(row, inputs.size() - 1)];
    std::ranges::copy(ids, rows.ids.begin() + row * length);
    std::fill_n(rows.segments.begin() + row * length, ids.size(), 1);
  }
  return rows;
}

}  // namespace syntra
