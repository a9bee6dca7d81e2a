// SPDX-License-Identifier: Apache-2.0
#include "data/table_source.h"

#include "core/thread.h"
#include "data/with_eos.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kEos = 1;

TableSource TableOf(const std::vector<TextPair>& pairs, const ExampleLengths& row) {
  return {"table", pairs, T5(), MakeObjective("text_to_text", {.row = row, .eos = kEos})};
}

// What an epoch gives as example i, inputs and targets.
std::pair<Ids, Ids> InputsAndTargets(const ExampleEpoch& epoch, int64_t i) {
  const ExampleLengths lengths = epoch.LengthsOf(i);
  Ids inputs(lengths.inputs), targets(lengths.targets);
  epoch.Write(i, {inputs, targets});
  return {inputs, targets};
}

// seqio's append_eos_after_trim: at most length - 1 ids, then EOS.
Ids TrimmedWithEos(Ids ids, int64_t length) {
  ids.resize(std::min<size_t>(ids.size(), length - 1));
  ids.push_back(kEos);
  return ids;
}

// More pairs than one thread takes at a time, some empty and some too long.
std::vector<TextPair> ManyPairs() {
  std::vector<TextPair> pairs;
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (int word = 0; word < i % 23; ++word) text += fmt::format("word {} ", i * word);
    pairs.push_back({"cola sentence: " + text, i % 7 == 0 ? "" : text.substr(0, i % 50)});
  }
  return pairs;
}

TEST(TableSource, GivesThePairsCutAndEnded) {
  const std::vector<TextPair> pairs = ManyPairs();
  const ExampleLengths row{40, 12};
  const TableSource table = TableOf(pairs, row);
  const auto epoch = table.Epoch(0);
  ASSERT_EQ(epoch->size(), 1000);
  int64_t cut = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const Ids inputs = T5().Encode(pairs[i].inputs), targets = T5().Encode(pairs[i].targets);
    const auto [given_inputs, given_targets] = InputsAndTargets(*epoch, i);
    EXPECT_EQ(given_inputs, TrimmedWithEos(inputs, row.inputs));
    EXPECT_EQ(given_targets, TrimmedWithEos(targets, row.targets));
    // What evaluations and lines of tasks give the model.
    bool inputs_cut = false, targets_cut = false;
    EXPECT_EQ(IdsWithEos(T5(), pairs[i].inputs, row.inputs, &inputs_cut), given_inputs);
    EXPECT_EQ(IdsWithEos(T5(), pairs[i].targets, row.targets, &targets_cut), given_targets);
    EXPECT_EQ(inputs_cut, inputs.size() + 1 > 40);
    EXPECT_EQ(targets_cut, targets.size() + 1 > 12);
    cut += inputs_cut || targets_cut;
  }
  EXPECT_EQ(table.cut_count(), cut);
  EXPECT_GT(cut, 100);
}

// T5's ids of a label, as its tasks have them.
TEST(TableSource, ALabelIsItsPiecesAndEos) {
  const TableSource table = TableOf({{"sst2 sentence: it 's fine .", "positive"}}, {512, 84});
  const auto [inputs, targets] = InputsAndTargets(*table.Epoch(0), 0);
  EXPECT_EQ(targets, (Ids{1465, 1}));
  EXPECT_EQ(inputs.back(), kEos);
  EXPECT_EQ(table.cut_count(), 0);
}

TEST(TableSource, ThreadsDoNotMatter) {
  const int threads = ThreadCount();
  SetThreadCount(4);
  const Digest many = TableOf(ManyPairs(), {40, 12}).ContentDigest();
  SetThreadCount(1);
  EXPECT_EQ(TableOf(ManyPairs(), {40, 12}).ContentDigest(), many);
  SetThreadCount(threads);
  std::vector<TextPair> other = ManyPairs();
  other[500].targets = "x";
  EXPECT_NE(TableOf(other, {40, 12}).ContentDigest(), many);
  // Ids that move from the inputs to the targets are other data.
  EXPECT_NE(TableOf({{"a a", "a"}}, {40, 12}).ContentDigest(),
            TableOf({{"a", "a a"}}, {40, 12}).ContentDigest());
}

}  // namespace
}  // namespace syntra
