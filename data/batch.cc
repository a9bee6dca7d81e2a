// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "configs/schema/config.pb.h"

namespace syntra {

Batch::Batch(int64_t rows, int64_t input_length, int64_t target_length)
    : rows(rows),
      input_length(input_length),
      target_length(target_length),
      encoder_ids(rows * input_length),
      encoder_segments(rows * input_length),
      encoder_positions(rows * input_length),
      decoder_ids(rows * target_length),
      targets(rows * target_length),
      decoder_segments(rows * target_length),
      decoder_positions(rows * target_length) {}

uint64_t LabelChecksum(const Batch& batch) {
  uint64_t sum = 0;
  const auto first = static_cast<uint64_t>(batch.first_example * batch.target_length);
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] == 0) continue;
    // splitmix64 of the place and the id.
    uint64_t mixed = (first + i) * 0x9e3779b97f4a7c15ull + static_cast<uint32_t>(batch.targets[i]);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    sum += mixed ^ (mixed >> 31);
  }
  return sum;
}

ExampleSettings ExampleSettings::From(const DataConfig& config, const Tokenizer& tokenizer) {
  CheckHasEos(tokenizer);
  ExampleSettings settings;
  settings.noise_density = config.noise_density();
  settings.mean_span_length = config.mean_span_length();
  settings.input_length = config.input_length();
  settings.longest =
      LengthsFor(config.input_length(), config.noise_density(), config.mean_span_length());
  settings.target_length = settings.longest.targets;
  settings.first_sentinel = tokenizer.SentinelId(0);
  settings.eos = tokenizer.eos_id();
  if (settings.longest.spans > tokenizer.extra_ids()) {
    Fail(ExitCode::kConfig,
         "data.input_length {} with noise_density {} and mean_span_length {} masks {} spans, but "
         "there "
         "are only {} sentinels; set data.extra_ids to at least {}",
         settings.input_length, settings.noise_density, settings.mean_span_length,
         settings.longest.spans, tokenizer.extra_ids(), settings.longest.spans);
  }
  return settings;
}

RowWriter::RowWriter(const ExampleSettings& settings, int64_t row, Batch* batch)
    : settings_(settings),
      batch_(*batch),
      corruption_(settings.noise_density, settings.mean_span_length),
      tokens_(settings.longest.tokens),
      inputs_(settings.longest.tokens + 1),
      targets_(settings.longest.tokens + 1),
      row_(row) {}

std::span<int32_t> RowWriter::Tokens(int64_t count) { return std::span(tokens_).first(count); }

void RowWriter::Append(std::span<const int32_t> tokens, RandomKey key) {
  const auto mask = corruption_.RandomMask(static_cast<int64_t>(tokens.size()), key);
  const int64_t inputs =
      WriteCorruptedInputs(tokens, mask, settings_.first_sentinel, settings_.eos, inputs_);
  const int64_t targets =
      WriteCorruptedTargets(tokens, mask, settings_.first_sentinel, settings_.eos, targets_);
  SYNTRA_CHECK(
      input_end_ + inputs <= batch_.input_length && target_end_ + targets <= batch_.target_length,
      "an example of {} inputs and {} targets does not fit behind {} and {}", inputs, targets,
      input_end_, target_end_);
  ++segment_;
  const int64_t in = row_ * batch_.input_length + input_end_;
  std::copy_n(inputs_.begin(), inputs, batch_.encoder_ids.begin() + in);
  std::fill_n(batch_.encoder_segments.begin() + in, inputs, segment_);
  std::iota(batch_.encoder_positions.begin() + in, batch_.encoder_positions.begin() + in + inputs,
            0);
  const int64_t out = row_ * batch_.target_length + target_end_;
  std::copy_n(targets_.begin(), targets, batch_.targets.begin() + out);
  batch_.decoder_ids[out] = 0;
  std::copy_n(targets_.begin(), targets - 1, batch_.decoder_ids.begin() + out + 1);
  std::fill_n(batch_.decoder_segments.begin() + out, targets, segment_);
  std::iota(batch_.decoder_positions.begin() + out,
            batch_.decoder_positions.begin() + out + targets, 0);
  input_end_ += inputs;
  target_end_ += targets;
}

void CountTargetTokens(Batch* batch) {
  batch->target_tokens = std::count_if(batch->targets.begin(), batch->targets.end(),
                                       [](int32_t id) { return id > 0; });
}

}  // namespace syntra
