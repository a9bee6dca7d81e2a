// SPDX-License-Identifier: Apache-2.0
#include "decode/requests.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/octave.h"
#include "data/packer.h"

namespace syntra {
namespace {

// A step reads every weight once, whatever the rows, so more rows cost little until their products
// fill the processor. Longer inputs and outputs get fewer, since each token holds keys and values
// in every layer.
constexpr int64_t kMostRows = 192, kInputTokens = 8192, kOutputTokens = 16384;
constexpr int64_t kShortestOutput = 4;
// What a batch costs besides its inputs, in tokens of inputs: each of its steps reads all weights.
constexpr int64_t kBatchTokens = 1024;

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

// The inputs of the programs for a batch of `count` inputs.
int64_t PaddedInputs(int64_t count, int64_t rows, int64_t output_length) {
  return RoundUpInOctave(count, 1, MostOfOutputs(rows, output_length));
}

// Divides requests, the largest first, into the batches that cost the fewest tokens: those of
// padded inputs, and kBatchTokens for each batch. Returns where the batches begin, then the end.
std::vector<size_t> CheapestDivision(std::span<const RequestSize> ordered, int64_t input_length,
                                     int64_t output_length, bool equal_inputs) {
  // By place: the cost of the requests before it, and where the last of their batches begins.
  std::vector<int64_t> costs(ordered.size() + 1, std::numeric_limits<int64_t>::max());
  std::vector<size_t> last_begins(ordered.size() + 1);
  costs[0] = 0;
  for (size_t begin = 0; begin < ordered.size(); ++begin) {
    const auto& [rows, longest, output] = ordered[begin];
    const int64_t length = PaddedLength(longest, input_length);
    const auto most = static_cast<size_t>(MostInputs(rows, length, output_length));
    for (size_t end = begin + 1; end <= std::min(begin + most, ordered.size()); ++end) {
      const RequestSize& last = ordered[end - 1];
      if (last.rows != rows || (equal_inputs && last.input != longest)) break;
      const auto count = static_cast<int64_t>(end - begin);
      const int64_t cost =
          costs[begin] + length * PaddedInputs(count, rows, output_length) + kBatchTokens;
      if (cost <= costs[end]) {
        costs[end] = cost;
        last_begins[end] = begin;
      }
    }
  }
  std::vector<size_t> begins = {ordered.size()};
  while (begins.back() > 0) begins.push_back(last_begins[begins.back()]);
  std::ranges::reverse(begins);
  return begins;
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
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) {
    return std::tuple(sizes[i].rows, sizes[i].input, sizes[i].output);
  });
  std::vector<RequestSize> ordered;
  for (const size_t request : order) ordered.push_back(sizes[request]);
  std::vector<RequestBatch> batches;
  const auto begins = CheapestDivision(ordered, input_length, output_length, equal_inputs);
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto requests = std::span(order).subspan(begins[i], begins[i + 1] - begins[i]);
    RequestSize largest = ordered[begins[i]];
    largest.input = PaddedLength(largest.input, input_length);
    for (const size_t request : requests) {
      largest.output = std::max(largest.output, sizes[request].output);
    }
    largest.output = RoundedOutput(largest.output, output_length);
    batches.push_back({.requests = {requests.begin(), requests.end()},
                       .inputs = PaddedInputs(std::ssize(requests), largest.rows, output_length),
                       .largest = largest});
  }
  // What takes the most memory comes at once.
  std::ranges::stable_sort(batches, std::greater<>(), [](const RequestBatch& batch) {
    return batch.inputs * batch.largest.input;
  });
  return batches;
}

RequestBatch FullBatch(int64_t requests, const RequestSize& size, int64_t output_length) {
  const int64_t count = std::min(requests, MostInputs(size.rows, size.input, output_length));
  return {.requests = {}, .inputs = PaddedInputs(count, size.rows, output_length), .largest = size};
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
