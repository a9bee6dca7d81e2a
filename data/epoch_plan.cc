// SPDX-License-Identifier: Apache-2.0
#include "data/epoch_plan.h"

namespace syntra {
namespace {

// Where each packed row begins when segments are taken in the order of `order`.
std::vector<int64_t> PackShortSegments(const SegmentTable& segments, const KeyedPermutation& order,
                                       const ExampleSettings& settings, bool pack) {
  std::vector<int64_t> begins;
  int64_t inputs = 0, targets = 0;
  for (int64_t i = 0; i < order.size(); ++i) {
    const int64_t tokens = segments.LengthOf(segments.ShortSegment(order(i)));
    const CorruptionLengths lengths =
        LengthsOfSegment(tokens, settings.noise_density, settings.mean_span_length);
    inputs += lengths.inputs;
    targets += lengths.targets;
    if (pack && i > 0 && inputs <= settings.input_length && targets <= settings.target_length) {
      continue;
    }
    begins.push_back(i);
    inputs = lengths.inputs;
    targets = lengths.targets;
  }
  begins.push_back(order.size());
  return begins;
}

}  // namespace

EpochPlan::EpochPlan(const TokenCorpus& corpus, const ExampleSettings& settings, bool pack,
                     uint64_t seed, uint64_t epoch)
    : seed_(seed),
      epoch_(epoch),
      segments_(corpus, settings.longest.tokens, seed, epoch),
      short_order_(segments_.short_count(), DeriveKey(seed, "pack order", epoch)),
      packed_begin_(PackShortSegments(segments_, short_order_, settings, pack)),
      row_order_(segments_.full_count() + static_cast<int64_t>(packed_begin_.size()) - 1,
                 DeriveKey(seed, "row order", epoch)) {}

template <typename Visit>
void EpochPlan::VisitSegments(int64_t index, const Visit& visit) const {
  const int64_t row = row_order_(index);
  if (row < segments_.full_count()) {
    visit(segments_.FullSegment(row));
    return;
  }
  const int64_t packed = row - segments_.full_count();
  for (int64_t i = packed_begin_[packed]; i < packed_begin_[packed + 1]; ++i) {
    visit(segments_.ShortSegment(short_order_(i)));
  }
}

void EpochPlan::WriteRow(int64_t index, RowWriter* writer) const {
  VisitSegments(index, [&](int64_t segment) {
    const std::span<int32_t> tokens = writer->Tokens(segments_.LengthOf(segment));
    segments_.CopyTokens(segment, tokens);
    writer->Append(tokens, DeriveKey(seed_, "span mask", epoch_, segment));
  });
}

std::vector<int64_t> EpochPlan::SegmentsOf(int64_t index) const {
  std::vector<int64_t> segments;
  VisitSegments(index, [&](int64_t segment) { segments.push_back(segment); });
  return segments;
}

}  // namespace syntra
