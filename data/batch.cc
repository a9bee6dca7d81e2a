// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace syntra {
namespace {

void FillWithPlaces(std::span<int32_t> slots) { std::iota(slots.begin(), slots.end(), 0); }

}  // namespace

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

void RowWriter::Append(const ExampleEpoch& epoch, int64_t example) {
  const ExampleLengths lengths = epoch.LengthsOf(example);
  SYNTRA_CHECK((filled_ + lengths).FitIn({batch_.input_length, batch_.target_length}),
               "an example of {} inputs and {} targets does not fit behind {} and {}",
               lengths.inputs, lengths.targets, filled_.inputs, filled_.targets);
  const int64_t in = row_ * batch_.input_length + filled_.inputs;
  const int64_t out = row_ * batch_.target_length + filled_.targets;
  const auto inputs_of = [&](std::vector<int32_t>& values) {
    return std::span(values).subspan(in, lengths.inputs);
  };
  const auto targets_of = [&](std::vector<int32_t>& values) {
    return std::span(values).subspan(out, lengths.targets);
  };
  const std::span<int32_t> targets = targets_of(batch_.targets);
  epoch.Write(example, {inputs_of(batch_.encoder_ids), targets});
  ++segment_;
  std::ranges::fill(inputs_of(batch_.encoder_segments), segment_);
  std::ranges::fill(targets_of(batch_.decoder_segments), segment_);
  FillWithPlaces(inputs_of(batch_.encoder_positions));
  FillWithPlaces(targets_of(batch_.decoder_positions));
  std::ranges::copy(targets.first(targets.size() - 1),
                    targets_of(batch_.decoder_ids).subspan(1).begin());
  filled_ = filled_ + lengths;
}

void CountTargetTokens(Batch* batch) {
  batch->target_tokens = std::count_if(batch->targets.begin(), batch->targets.end(),
                                       [](int32_t id) { return id > 0; });
}

}  // namespace syntra
