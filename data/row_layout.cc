// SPDX-License-Identifier: Apache-2.0
#include "data/row_layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace syntra {
namespace {

// Slots [begin, begin + length) of a row of a tensor.
std::span<int32_t> SlotsIn(Batch* batch, const char* name, int64_t row, int64_t begin,
                           int64_t length) {
  std::vector<int32_t>& values = (*batch)[name];
  return std::span(values).subspan(row * batch->LengthOf(name) + begin, length);
}

void MarkSegment(Batch* batch, const std::string& side, int64_t row, int64_t begin, int64_t length,
                 int32_t segment) {
  const auto slots = [&](const char* name) {
    return SlotsIn(batch, (side + name).c_str(), row, begin, length);
  };
  std::ranges::fill(slots("_segments"), segment);
  const std::span<int32_t> places = slots("_positions");
  std::iota(places.begin(), places.end(), 0);
}

// Writes the ids that the decoder reads to predict `sequence`: 0, then all but the last of it.
void MoveRight(std::span<const int32_t> sequence, std::span<int32_t> read) {
  read.front() = 0;
  std::ranges::copy(sequence.first(sequence.size() - 1), read.begin() + 1);
}

class Separate : public RowLayout {
 public:
  ExampleLengths SlotsOf(const ExampleLengths& lengths) const override { return lengths; }

  std::vector<int32_t> InputsOf(const Batch& batch, int64_t row) const override {
    const std::span<const int32_t> ids = batch.Row("encoder_ids", row);
    const std::span<const int32_t> segments = batch.Row("encoder_segments", row);
    const auto padding = std::ranges::find(segments, 0);
    return {ids.begin(), ids.begin() + (padding - segments.begin())};
  }

  void Write(const ExampleLengths& lengths, int32_t segment, int64_t row,
             const ExampleLengths& begin, Batch* batch, const WriteExample& write) const override {
    const int64_t encoder_row = row / batch->targets_per_input;
    const std::span<int32_t> inputs =
        SlotsIn(batch, "encoder_ids", encoder_row, begin.inputs, lengths.inputs);
    const std::span<int32_t> targets =
        SlotsIn(batch, "targets", row, begin.targets, lengths.targets);
    write({inputs, targets});
    MarkSegment(batch, "encoder", encoder_row, begin.inputs, lengths.inputs, segment);
    MarkSegment(batch, "decoder", row, begin.targets, lengths.targets, segment);
    MoveRight(targets, SlotsIn(batch, "decoder_ids", row, begin.targets, lengths.targets));
  }
};

class TokenPairs final : public Separate {
 public:
  void Write(const ExampleLengths& lengths, int32_t segment, int64_t row,
             const ExampleLengths& begin, Batch* batch, const WriteExample& write) const override {
    write({SlotsIn(batch, "encoder_ids", row, begin.inputs, lengths.inputs),
           SlotsIn(batch, "targets", row, begin.targets, lengths.targets)});
    MarkSegment(batch, "encoder", row, begin.inputs, lengths.inputs, segment);
  }
};

class OneClass final : public Separate {
 public:
  ExampleLengths SlotsOf(const ExampleLengths& lengths) const override {
    return {lengths.inputs, 1};
  }
};

class Shared final : public RowLayout {
 public:
  ExampleLengths SlotsOf(const ExampleLengths& lengths) const override {
    return {0, lengths.inputs + lengths.targets};
  }

  // An input stands in the slot after the one that would have it as its target.
  std::vector<int32_t> InputsOf(const Batch& batch, int64_t row) const override {
    const std::span<const int32_t> ids = batch.Row("decoder_ids", row);
    const std::span<const int32_t> targets = batch.Row("targets", row);
    const std::span<const int32_t> segments = batch.Row("decoder_segments", row);
    std::vector<int32_t> inputs;
    for (size_t i = 0; i + 1 < ids.size() && segments[i] > 0; ++i) {
      if (targets[i] == kIgnoredTarget) inputs.push_back(ids[i + 1]);
    }
    return inputs;
  }

  void Write(const ExampleLengths& lengths, int32_t segment, int64_t row,
             const ExampleLengths& begin, Batch* batch, const WriteExample& write) const override {
    const int64_t length = lengths.inputs + lengths.targets;
    const std::span<int32_t> sequence = SlotsIn(batch, "targets", row, begin.targets, length);
    const std::span<int32_t> inputs = sequence.first(lengths.inputs);
    write({inputs, sequence.subspan(lengths.inputs)});
    MarkSegment(batch, "decoder", row, begin.targets, length, segment);
    MoveRight(sequence, SlotsIn(batch, "decoder_ids", row, begin.targets, length));
    std::ranges::fill(inputs, kIgnoredTarget);
    const int64_t prefix = std::min(lengths.inputs + 1, length);
    std::ranges::fill(SlotsIn(batch, "decoder_prefix_ends", row, begin.targets, prefix),
                      static_cast<int32_t>(begin.targets + prefix));
  }
};

}  // namespace

const RowLayout& SeparateRows() {
  static const Separate layout;
  return layout;
}

const RowLayout& SharedRows() {
  static const Shared layout;
  return layout;
}

const RowLayout& RowsOfTokenPairs() {
  static const TokenPairs layout;
  return layout;
}

const RowLayout& RowsOfOneClass() {
  static const OneClass layout;
  return layout;
}

void RowWriter::Append(const ExampleLengths& lengths, const RowLayout::WriteExample& write) {
  const ExampleLengths begin = filled_;
  filled_ = begin + layout_.SlotsOf(lengths);
  SYNTRA_CHECK(filled_.FitIn({batch_.input_length, batch_.target_length}),
               "an example of {} inputs and {} targets does not fit after {} and {}",
               lengths.inputs, lengths.targets, begin.inputs, begin.targets);
  layout_.Write(lengths, ++segment_, row_, begin, &batch_, write);
}

void RowWriter::Append(const ExampleEpoch& epoch, int64_t example) {
  Append(epoch.LengthsOf(example), [&](const ExampleSlots& slots) { epoch.Write(example, slots); });
}

}  // namespace syntra
