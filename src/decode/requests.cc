// SPDX-License-Identifier: Apache-2.0
#include "decode/requests.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "base/octave.h"
#include "data/packer.h"

namespace syntra {
namespace {

// A step reads every weight once, whatever the rows, so more rows cost little until their products
// fill the processor. Longer inputs and outputs get fewer, since each token holds keys and values
// in every layer.
constexpr int64_t kMostRows = 96, kInputTokens = 8192, kOutputTokens = 16384;
constexpr int64_t kShortestOutput = 4;

// The least power of two that holds `length`, at least kShortestOutput and at most `longest`.
int64_t RoundedOutput(int64_t length, int64_t longest) {
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  return std::min(std::max(power, kShortestOutput), longest);
}

// The most inputs of a batch by the room for their outputs, where each input has `rows` rows of
// them.
int64_t MostOfOutputs(int64_t rows, int64_t output_length) {
  return std::max<int64_t>(1, std::min(kMostRows, kOutputTokens / output_length) / rows);
}

// The most inputs of a padded length that a batch has, where each has `rows` rows of outputs.
int64_t MostInputs(int64_t rows, int64_t padded_length, int64_t output_length) {
  return std::clamp<int64_t>(kInputTokens / std::max<int64_t>(padded_length, 1), 1,
                             MostOfOutputs(rows, output_length));
}

}  // namespace

bool EndsBefore(const DecodeRequest& request, const Tokenizer& tokenizer,
                std::span<const int32_t> prefix, int32_t id) {
  if (id == tokenizer.eos_id()) return true;
  if (request.is_settled && request.is_settled(prefix)) return true;
  const bool is_sentinel =
      id >= tokenizer.SentinelId(tokenizer.extra_ids() - 1) && id <= tokenizer.SentinelId(0);
  if (request.sentinels.empty() || !is_sentinel) return false;
  return std::ranges::all_of(request.sentinels, [&](int32_t sentinel) {
    return std::ranges::find(prefix, sentinel) != prefix.end();
  });
}

std::vector<RequestBatch> BatchesBySize(std::span<const RequestSize> sizes, int64_t input_length,
                                        int64_t output_length, bool equal_inputs) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // The largest first, so that what takes the most memory is known at once.
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) {
    return std::tuple(sizes[i].rows, sizes[i].input, sizes[i].output);
  });
  std::vector<RequestBatch> batches;
  for (size_t first = 0; first < order.size();) {
    RequestBatch batch{.requests = {}, .inputs = 0, .largest = sizes[order[first]]};
    const int64_t longest = batch.largest.input;
    batch.largest.input = PaddedLength(longest, input_length);
    const int64_t most_rows = MostOfOutputs(batch.largest.rows, output_length);
    const int64_t most = MostInputs(batch.largest.rows, batch.largest.input, output_length);
    for (; first < order.size() && std::ssize(batch.requests) < most; ++first) {
      const RequestSize& size = sizes[order[first]];
      if (size.rows != batch.largest.rows || (equal_inputs && size.input != longest)) break;
      batch.requests.push_back(order[first]);
      batch.largest.output = std::max(batch.largest.output, size.output);
    }
    batch.inputs = RoundUpInOctave(std::ssize(batch.requests), 1, most_rows);
    batch.largest.output = RoundedOutput(batch.largest.output, output_length);
    batches.push_back(std::move(batch));
  }
  return batches;
}

RequestBatch FullBatch(int64_t requests, const RequestSize& size, int64_t output_length) {
  const int64_t count = std::min(requests, MostInputs(size.rows, size.input, output_length));
  return {.requests = {},
          .inputs = RoundUpInOctave(count, 1, MostOfOutputs(size.rows, output_length)),
          .largest = size};
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
