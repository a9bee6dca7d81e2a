// SPDX-License-Identifier: Apache-2.0
#include "decode/batch_decoder.h"

#include <xxhash.h>

#include <algorithm>

#include "decode/share.h"
#include "dist/self.h"

namespace syntra {
namespace {

// Sessions are kept for later batches of their shapes as long as their caches together take no more
// than this. To make one takes a notable part of a batch only where models, and so caches, are
// small.
constexpr size_t kKeptCaches = size_t{64} << 20;

}  // namespace

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
      settings_(settings),
      strategy_(MakeStrategy(settings.decoding)) {
  CheckDecodes(model.model);
  const int64_t length = settings.decoding.max_length();
  if (length > 0) settings_.output_length = length;
  if (model_.transients) return;
  own_transients_ = std::make_unique<TransientBuffer>(model.backend.device());
  model_.transients = own_transients_.get();
}

DecodeSession& BatchDecoder::SessionFor(const RequestBatch& batch) {
  const DecodeShape shape{.inputs = batch.inputs,
                          .rows_per_input = batch.largest.rows,
                          .input_length = batch.largest.input,
                          .max_length = settings_.output_length,
                          .together = settings_.together};
  const auto kept =
      std::ranges::find(sessions_, shape, [](const auto& session) { return session->shape(); });
  if (kept != sessions_.end()) {
    std::rotate(kept, kept + 1, sessions_.end());
    return *sessions_.back();
  }
  MakeRoom();
  NextTokens next = strategy_->next_tokens();
  if (next == NextTokens::kBest && settings_.log_probabilities) {
    next = NextTokens::kBestWithLogProbability;
  }
  sessions_.push_back(std::make_unique<DecodeSession>(model_, shape, next));
  return *sessions_.back();
}

// Before a session is made, so that the memory of two large ones is never needed.
void BatchDecoder::MakeRoom() {
  size_t bytes = 0;
  for (const auto& session : sessions_) bytes += session->cache_bytes();
  while (bytes > kKeptCaches) {
    bytes -= sessions_.front()->cache_bytes();
    sessions_.erase(sessions_.begin());
  }
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
    asked.digests.push_back(XXH3_64bits(inputs.back().data(), inputs.back().size_bytes()));
  }
  const EncoderRows rows = RowsOf(batch, inputs);
  DecodeSession& session = SessionFor(batch);
  session.Start(rows.ids, rows.segments);
  return strategy_->Decode(session, asked);
}

std::vector<Hypotheses> BatchDecoder::Decode(std::span<const DecodeRequest> requests,
                                             Communicator& ranks, const OnBatch& on_batch) {
  std::vector<RequestSize> sizes;
  for (const DecodeRequest& request : requests) {
    sizes.push_back({.rows = strategy_->rows_per_input(),
                     .input = static_cast<int64_t>(request.ids.size()),
                     // What asks for as many spans takes as many steps.
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
