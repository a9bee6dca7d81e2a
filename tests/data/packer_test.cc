// SPDX-License-Identifier: Apache-2.0
#include "data/packer.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(PackedEpoch, EpochsAndSeedsDiffer) {
  const auto source = Texts(100, 10);
  const auto first_row = [&](uint64_t seed, int64_t epoch) {
    return PackedEpoch(source->Epoch(epoch), {.row = kRow, .open_rows = 4}, seed, epoch)
        .ExamplesOf(0);
  };
  EXPECT_EQ(first_row(1, 0), first_row(1, 0));
  EXPECT_NE(first_row(1, 0), first_row(1, 1));
  EXPECT_NE(first_row(1, 0), first_row(2, 0));
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

// Rows are only as long as the whole batch needs, and all parts of the batch are equally long.
TEST(TrainingData, TrimsABatchToItsLongestExample) {
  const auto source = Texts(200, 10);
  const Packing whole{.row = kRow, .pack = false};
  Packing trimmed = whole;
  trimmed.trim = true;
  const TrainingData full(source, whole, 3), data(source, trimmed, 3);
  std::set<int64_t> lengths;
  for (int64_t step = 0; step < 100; ++step) {
    const Batch batch = data.Get(step, 4, 0, 4), expected = full.Get(step, 4, 0, 4);
    EXPECT_EQ(full.LengthsAt(step, 4), kRow);
    EXPECT_EQ(data.LengthsAt(step, 4), (ExampleLengths{batch.input_length, batch.target_length}));
    int64_t longest = 0;
    for (int64_t i = 0; i < 4 * kRow.inputs; ++i) {
      if (expected.encoder_ids[i] == 0) continue;
      const int64_t row = i / kRow.inputs, place = i % kRow.inputs;
      longest = std::max(longest, place + 1);
      ASSERT_LT(place, batch.input_length);
      ASSERT_EQ(batch.encoder_ids[row * batch.input_length + place], expected.encoder_ids[i]);
    }
    EXPECT_EQ(batch.input_length, PaddedLength(longest, kRow.inputs));
    EXPECT_EQ(batch.target_tokens, expected.target_tokens);
    EXPECT_EQ(data.Get(step, 4, 3, 1).input_length, batch.input_length);
    lengths.insert(batch.input_length);
  }
  EXPECT_GT(lengths.size(), 3u);
}

}  // namespace
}  // namespace syntra
