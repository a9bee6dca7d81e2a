// SPDX-License-Identifier: Apache-2.0
#include "data/packer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "core/random.h"
#include "data/training_data.h"
#include "tests/data/numbered_source.h"

namespace syntra {
namespace {

// Lengths between `least` and 400 of 512, and short targets: texts of tasks.
std::shared_ptr<const ExampleSource> Texts(int64_t size, uint32_t least) {
  return std::make_shared<NumberedSource>(
      "texts", Numbers{.size = [size](int64_t) { return size; },
                       .lengths =
                           [least](int64_t example) {
                             const RandomBits bits = RandomAt({1, 2}, example);
                             return ExampleLengths{least + UniformBelow(bits[0], 401 - least),
                                                   1 + UniformBelow(bits[1], 6)};
                           }});
}

constexpr ExampleLengths kRow{512, 62};

// Inputs in use of all slots.
double Filled(const PackedEpoch& rows) {
  double filled = 0;
  for (int64_t row = 0; row < rows.size(); ++row) {
    const ExampleLengths lengths = rows.LengthsOf(row);
    EXPECT_TRUE(lengths.FitIn(kRow));
    filled += static_cast<double>(lengths.inputs);
  }
  return filled / static_cast<double>(rows.size() * kRow.inputs);
}

TEST(PackedEpoch, HoldsEveryExampleOnce) {
  const auto source = Texts(3000, 10);
  for (const bool pack : {false, true}) {
    for (const int64_t open_rows : {1, 2, 64, 5000}) {
      const PackedEpoch rows(source->Epoch(0), {.row = kRow, .pack = pack, .open_rows = open_rows},
                             1, 0);
      EXPECT_EQ(rows.size() == 3000, !pack);
      std::set<int64_t> seen;
      int64_t examples = 0;
      for (int64_t row = 0; row < rows.size(); ++row) {
        ExampleLengths sum;
        for (const int64_t example : rows.ExamplesOf(row)) {
          sum = sum + rows.examples().LengthsOf(example);
          seen.insert(example);
          ++examples;
        }
        EXPECT_EQ(sum, rows.LengthsOf(row));
      }
      EXPECT_EQ(examples, 3000);
      EXPECT_EQ(seen.size(), 3000u);
    }
  }
}

// Why the examples of tasks are packed with many open rows: texts of a quarter row and more.
TEST(PackedEpoch, ManyOpenRowsLeaveLittleEmpty) {
  const auto source = Texts(20000, 128);
  const PackedEpoch one(source->Epoch(0), {.row = kRow, .open_rows = 1}, 1, 0);
  const PackedEpoch many(source->Epoch(0), {.row = kRow, .open_rows = 64}, 1, 0);
  EXPECT_LT(Filled(one), 0.77);
  EXPECT_GT(Filled(many), 0.91);
}

// Which examples share a row, and the order of the rows: every seed and epoch draws both.
TEST(PackedEpoch, EpochsAndSeedsDiffer) {
  for (const int64_t full : {0, 100}) {
    const NumberedSource source("numbered", Numbers{.size = [](int64_t) { return 100; },
                                                    .lengths =
                                                        [full](int64_t) {
                                                          return ExampleLengths{full ? 3 : 1, 1};
                                                        },
                                                    .full = full});
    const auto rows_of = [&](uint64_t seed, int64_t epoch) {
      const PackedEpoch packed(source.Epoch(epoch), {.row = {3, 3}}, seed, epoch);
      std::vector<std::vector<int64_t>> rows;
      for (int64_t row = 0; row < packed.size(); ++row) rows.push_back(packed.ExamplesOf(row));
      if (full == 0) std::ranges::sort(rows);  // who shares one, in whatever order they come
      return rows;
    };
    EXPECT_EQ(rows_of(1, 0), rows_of(1, 0));
    EXPECT_NE(rows_of(1, 0), rows_of(1, 1)) << full;
    EXPECT_NE(rows_of(1, 0), rows_of(2, 0)) << full;
  }
}

TEST(PaddedLength, WastesLittleWithFewLengths) {
  std::set<int64_t> lengths;
  for (int64_t length = 1; length <= 512; ++length) {
    const int64_t padded = PaddedLength(length, 512);
    EXPECT_GE(padded, length);
    EXPECT_EQ(padded % 8, 0);
    EXPECT_EQ(PaddedLength(padded, 512), padded);
    if (length > 32) {
      EXPECT_LT(static_cast<double>(padded - length), 0.2 * static_cast<double>(padded));
    }
    lengths.insert(padded);
  }
  EXPECT_EQ(lengths.size(), 20u);
  EXPECT_EQ(PaddedLength(61, 62), 62);
  EXPECT_EQ(PaddedLength(90, 512), 96);
  EXPECT_EQ(PaddedLength(300, 512), 320);
}

// Lengths of a row's inputs and targets, then its first id.
std::array<int64_t, 3> OutlineOf(const Batch& batch, int64_t row) {
  const auto used = [row](const std::vector<int32_t>& ids, int64_t length) {
    return length - std::ranges::count(std::span(ids).subspan(row * length, length), 0);
  };
  return {used(batch["encoder_ids"], batch.input_length),
          used(batch["targets"], batch.target_length),
          batch["encoder_ids"][row * batch.input_length]};
}

// The rows of a batch are ordered by length, and a part of it is only as long as its own need.
TEST(TrainingData, TrimsThePartsOfABatchToTheirLongestExample) {
  const auto source = Texts(200, 10);
  const RowPacking whole{.row = kRow, .pack = false};
  RowPacking trimmed = whole;
  trimmed.trim = true;
  const TrainingData full(source, whole, 3), data(source, trimmed, 3);
  std::set<int64_t> lengths;
  for (int64_t step = 0; step < 50; ++step) {
    const Batch expected = full.Get(step, 8, 0, 8);
    EXPECT_EQ(expected.input_length, kRow.inputs);
    std::vector<std::array<int64_t, 3>> rows, parts;
    for (int64_t row = 0; row < 8; ++row) rows.push_back(OutlineOf(expected, row));
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return std::pair(row[0], row[1]); });
    int64_t target_tokens = 0;
    for (const int64_t first : {0, 2, 4, 6}) {
      const Batch part = data.Get(step, 8, first, 2);
      for (const int64_t row : {0, 1}) parts.push_back(OutlineOf(part, row));
      EXPECT_EQ(part.input_length, PaddedLength(parts.back()[0], kRow.inputs));
      EXPECT_EQ(part.target_length, 8);
      lengths.insert(part.input_length);
      target_tokens += part.target_tokens;
    }
    EXPECT_EQ(parts, rows);
    EXPECT_EQ(target_tokens, expected.target_tokens);
    EXPECT_EQ(data.Get(step, 8, 0, 8).input_length, data.Get(step, 8, 7, 1).input_length);
  }
  EXPECT_GT(lengths.size(), 6u);
}

}  // namespace
}  // namespace syntra
