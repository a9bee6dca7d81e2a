// SPDX-License-Identifier: Apache-2.0
#include "data/packer.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/octave.h"
#include "configs/schema/config.pb.h"

namespace syntra {
namespace {

// Enough that even examples of a third of a row find their place (tests/data/packer_test.cc).
constexpr int64_t kOpenRows = 64;
// Shorter rows save little.
constexpr int64_t kLeastPadding = 8;

// A row that waits for more examples: where they are among the short ones.
struct OpenRow {
  ExampleLengths filled;
  std::vector<int64_t> places;
};

// The rows of `count` short examples in the order in which they are closed.
template <typename LengthsAt, typename Close>
void PackRows(int64_t count, const RowPacking& packing, const LengthsAt& lengths_at,
              const Close& close) {
  std::deque<OpenRow> open;
  for (int64_t place = 0; place < count; ++place) {
    const ExampleLengths lengths = lengths_at(place);
    SYNTRA_CHECK(lengths.FitIn(packing.row),
                 "an example that takes {} and {} slots for rows of {}, {}", lengths.inputs,
                 lengths.targets, packing.row.inputs, packing.row.targets);
    const auto fits = [&](const OpenRow& row) { return (row.filled + lengths).FitIn(packing.row); };
    auto row = std::ranges::find_if(open, fits);
    if (row == open.end()) {
      if (std::ssize(open) == packing.open_rows) {
        close(open.front());
        open.pop_front();
      }
      row = open.insert(open.end(), OpenRow());
    }
    row->filled = row->filled + lengths;
    row->places.push_back(place);
  }
  for (const OpenRow& row : open) close(row);
}

}  // namespace

RowPacking RowPacking::OfCorpus(const DataConfig& config, const RowLayout& layout) {
  return {.row = layout.SlotsOf(RowLengths(config)), .pack = config.pack(), .layout = &layout};
}

RowPacking RowPacking::OfExamples(const DataConfig& config, const RowLayout& layout) {
  return {.row = layout.SlotsOf(RowLengths(config)),
          .pack = config.pack(),
          .open_rows = kOpenRows,
          .trim = true,
          .layout = &layout};
}

ExampleLengths RowPacking::BatchLengths(const ExampleLengths& longest) const {
  if (!Trims()) return row;
  return {PaddedLength(longest.inputs, row.inputs), PaddedLength(longest.targets, row.targets)};
}

int64_t PaddedLength(int64_t length, int64_t most) {
  return RoundUpInOctave(length, kLeastPadding, most);
}

PackedEpoch::PackedEpoch(std::shared_ptr<const ExampleEpoch> examples, const RowPacking& packing,
                         uint64_t seed, int64_t epoch)
    : examples_(std::move(examples)),
      layout_(*packing.layout),
      short_order_(examples_->size() - examples_->full_count(),
                   DeriveKey(seed, "pack order", epoch)),
      row_order_(examples_->full_count() + PlanShortRows(packing),
                 DeriveKey(seed, "row order", epoch)) {}

int64_t PackedEpoch::PlanShortRows(const RowPacking& packing) {
  if (!packing.pack) return short_order_.size();
  int64_t packed = 0;
  packed_begin_.push_back(0);
  PackRows(
      short_order_.size(), packing,
      [&](int64_t place) {
        return layout_.SlotsOf(examples_->LengthsOf(examples_->ShortExample(short_order_(place))));
      },
      [&](const OpenRow& row) {
        // With one open row the places stay in their order.
        if (packing.open_rows > 1) {
          packed_.insert(packed_.end(), row.places.begin(), row.places.end());
        }
        packed_begin_.push_back(packed += std::ssize(row.places));
      });
  return std::ssize(packed_begin_) - 1;
}

template <typename Visit>
void PackedEpoch::VisitExamples(int64_t row, const Visit& visit) const {
  const int64_t ordered = row_order_(row);
  if (ordered < examples_->full_count()) {
    visit(examples_->FullExample(ordered));
    return;
  }
  const int64_t packed = ordered - examples_->full_count();
  const bool alone = packed_begin_.empty();
  const int64_t begin = alone ? packed : packed_begin_[packed];
  const int64_t end = alone ? packed + 1 : packed_begin_[packed + 1];
  for (int64_t i = begin; i < end; ++i) {
    const int64_t place = packed_.empty() ? i : packed_[i];
    visit(examples_->ShortExample(short_order_(place)));
  }
}

ExampleLengths PackedEpoch::LengthsOf(int64_t row) const {
  ExampleLengths lengths;
  VisitExamples(row, [&](int64_t example) {
    lengths = lengths + layout_.SlotsOf(examples_->LengthsOf(example));
  });
  return lengths;
}

void PackedEpoch::Prefetch(int64_t row) const {
  VisitExamples(row, [&](int64_t example) { examples_->Prefetch(example); });
}

void PackedEpoch::Write(int64_t row, RowWriter* writer) const {
  VisitExamples(row, [&](int64_t example) { writer->Append(*examples_, example); });
}

std::vector<int64_t> PackedEpoch::ExamplesOf(int64_t row) const {
  std::vector<int64_t> examples;
  VisitExamples(row, [&](int64_t example) { examples.push_back(example); });
  return examples;
}

}  // namespace syntra
