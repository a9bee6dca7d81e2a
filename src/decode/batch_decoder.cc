// SPDX-License-Identifier: Apache-2.0
#include "decode/batch_decoder.h"

#include <algorithm>

#include "base/digest.h"
#include "data/packer.h"
#include "decode/share.h"
#include "dist/self.h"

namespace syntra {
namespace {

// Sessions are kept for later batches of their shapes. To make one takes a notable part of a batch
// where models are small.
constexpr size_t kMostSessions = 16;

DecodeSettings WithOutputLength(DecodeSettings settings) {
  const int64_t length = settings.decoding.max_length();
  if (length > 0) settings.output_length = length;
  return settings;
}

DecodeShape ShapeOf(const RequestBatch& batch, const DecodeSettings& settings) {
  return {.inputs = batch.inputs,
          .rows_per_input = batch.largest.rows,
          .input_length = batch.largest.input,
          .max_length = settings.output_length,
          .together = settings.together};
}

NextTokens NextTokensOf(const Strategy& strategy, const DecodeSettings& settings) {
  const NextTokens next = strategy.next_tokens();
  return next == NextTokens::kBest && settings.log_probabilities
             ? NextTokens::kBestWithLogProbability
             : next;
}

// Positions that caches hold.
int64_t Positions(const DecodeShape& shape) {
  return shape.rows() *
         (shape.together > 0 ? RowLength(shape) : shape.input_length + shape.max_length);
}

// The shape of a full batch of `requests` requests that fills the most positions: many short inputs
// or few long ones.
DecodeShape LargestShape(const DecodeSettings& settings, int64_t rows_per_input, int64_t requests) {
  DecodeShape largest;
  int64_t length = 0;
  do {
    length = PaddedLength(length + 1, settings.input_length);
    const DecodeShape shape = ShapeOf(
        FullBatch(requests, {.rows = rows_per_input, .input = length}, settings.output_length),
        settings);
    if (Positions(shape) >= Positions(largest)) largest = shape;
  } while (length < settings.input_length);
  return largest;
}

}  // namespace

DecodingMemory MemoryOfDecoding(const TrainedModel& model, const DecodeSettings& asked,
                                int64_t requests) {
  const DecodeSettings settings = WithOutputLength(asked);
  const auto strategy = MakeStrategy(settings.decoding);
  const NextTokens next = NextTokensOf(*strategy, settings);
  const DecodeShape most = LargestShape(settings, strategy->rows_per_input(), requests);
  DecodingMemory memory = MemoryOfSession(model, most, next);
  // Programs that read the longest inputs may need more than those of the most positions.
  const RequestBatch longest =
      FullBatch(requests, {.rows = strategy->rows_per_input(), .input = settings.input_length},
                settings.output_length);
  if (const DecodeShape shape = ShapeOf(longest, settings); shape != most) {
    memory.transient_bytes =
        std::max(memory.transient_bytes, MemoryOfSession(model, shape, next).transient_bytes);
  }
  return memory;
}

DecodeSettings DecodeSettingsOf(const Config& config) {
  const ExampleLengths lengths = RowLengths(config.data());
  DecodeSettings settings{.decoding = config.decoding(),
                          .input_length = lengths.inputs,
                          .output_length = lengths.targets};
  if (HasSide(config.model(), Side::kEncoder)) return settings;
  settings.together = RowSlots(config).targets;
  settings.input_length = settings.together - 1;
  return settings;
}

BatchDecoder::BatchDecoder(const TrainedModel& model, const Tokenizer& tokenizer,
                           const DecodeSettings& settings)
    : model_(model),
      tokenizer_(tokenizer),
      settings_(WithOutputLength(settings)),
      strategy_(MakeStrategy(settings.decoding)),
      caches_(model.backend.device()) {
  CheckDecodes(model.model);
  if (model_.transients) return;
  own_transients_ = std::make_unique<TransientBuffer>(model.backend.device());
  model_.transients = own_transients_.get();
}

DecodeSession& BatchDecoder::SessionFor(const RequestBatch& batch) {
  const DecodeShape shape = ShapeOf(batch, settings_);
  const auto kept =
      std::ranges::find(sessions_, shape, [](const auto& session) { return session->shape(); });
  if (kept != sessions_.end()) {
    std::rotate(kept, kept + 1, sessions_.end());
    return *sessions_.back();
  }
  const std::byte* caches = caches_.data();
  auto session =
      std::make_unique<DecodeSession>(model_, shape, NextTokensOf(*strategy_, settings_), &caches_);
  if (caches_.data() != caches) sessions_.clear();
  if (sessions_.size() == kMostSessions) sessions_.erase(sessions_.begin());
  return *sessions_.emplace_back(std::move(session));
}

std::vector<Hypotheses> BatchDecoder::DecodeOne(std::span<const DecodeRequest> requests,
                                                const RequestBatch& batch) {
  std::vector<std::span<const int32_t>> inputs;
  DecodeBatch asked{.inputs = static_cast<int64_t>(batch.requests.size()),
                    .ends =
                        [&](int64_t input, std::span<const int32_t> prefix, int32_t id) {
                          return EndsBefore(requests[batch.requests[input]], tokenizer_, prefix,
                                            id);
                        },
                    .digests = {}};
  for (const size_t request : batch.requests) {
    inputs.emplace_back(requests[request].ids);
    asked.digests.push_back(ShortDigestOf(std::as_bytes(inputs.back())));
  }
  const EncoderRows rows = RowsOf(batch, inputs);
  DecodeSession& session = SessionFor(batch);
  session.Start(rows.ids, rows.segments);
  // Inputs that only fill the shape.
  for (int64_t i = asked.inputs; i < session.shape().inputs; ++i) session.Finish(i);
  return strategy_->Decode(session, asked);
}

std::vector<Hypotheses> BatchDecoder::Decode(std::span<const DecodeRequest> requests,
                                             Communicator& ranks, const OnBatch& on_batch) {
  std::vector<RequestSize> sizes;
  for (const DecodeRequest& request : requests) {
    sizes.push_back({.rows = strategy_->rows_per_input(),
                     .input = static_cast<int64_t>(request.ids.size()),
                     // Requests for equally many spans take about equally many steps.
                     .output = static_cast<int64_t>(request.sentinels.size())});
  }
  const std::vector<RequestBatch> batches =
      BatchesBySize(sizes, settings_.input_length, settings_.output_length,
                    !HasSide(model_.model.config(), Side::kEncoder));
  return ShareBatches<Hypotheses>(
      batches, requests.size(), ranks,
      [&](const RequestBatch& batch) { return DecodeOne(requests, batch); }, on_batch);
}

std::vector<Hypotheses> BatchDecoder::Decode(std::span<const DecodeRequest> requests) {
  SelfCommunicator alone;
  return Decode(requests, alone);
}

}  // namespace syntra
