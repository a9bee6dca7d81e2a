// SPDX-License-Identifier: Apache-2.0
// Rows of language models: documents one after the other, and what of them is to be given.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/corpus_source.h"
#include "data/token_corpus.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kEos = 1;

DataConfig Config(DataConfig::Objective objective) {
  DataConfig config = SampleConfig();
  config.set_objective(objective);
  config.set_input_length(64);
  config.set_documents_per_group(4);
  return config;
}

ValidationData Validation(DataConfig::Objective objective) {
  return ValidationData::Open(Config(objective), SharedRows(), T5(),
                              SplitOf(PreparedSample(), kValidationSplit));
}

// Each group of four documents, with an EOS after each.
std::vector<Ids> Groups() {
  const TokenCorpus corpus(SplitOf(PreparedSample(), kValidationSplit), T5(), "text", 4);
  std::vector<Ids> groups;
  for (int64_t g = 0; g < corpus.group_count(); ++g) {
    const DocumentGroup group = corpus.Group(g);
    Ids& ids = groups.emplace_back();
    for (int64_t i = group.first_document; i < group.last_document; ++i) {
      Ids document(group.shard->DocumentLength(i));
      group.shard->CopyTokens(group.shard->DocumentBegin(i), document);
      ids.insert(ids.end(), document.begin(), document.end());
      ids.push_back(kEos);
    }
  }
  return groups;
}

// What a row of one example reads, and then gives as its last token.
Ids SequenceOf(const Batch& batch, int64_t row) {
  const auto length = std::ranges::count(batch.Row("decoder_segments", row), 1);
  const std::span<const int32_t> read = batch.Row("decoder_ids", row).first(length);
  EXPECT_EQ(read.front(), 0);
  Ids sequence(read.begin() + 1, read.end());
  sequence.push_back(batch.Row("targets", row)[length - 1]);
  return sequence;
}

TEST(CausalLm, RowsAreTheDocumentsOneBehindTheOther) {
  const ValidationData data = Validation(DataConfig::CAUSAL_LM);
  int64_t row = 0;
  for (const Ids& group : Groups()) {
    for (size_t begin = 0; begin < group.size(); begin += 64, ++row) {
      ASSERT_LT(row, data.example_count());
      const Batch batch = data.Get(row, 1, 0, 1);
      const Ids expected(group.begin() + begin, group.begin() + std::min(begin + 64, group.size()));
      EXPECT_EQ(SequenceOf(batch, 0), expected);
      EXPECT_TRUE(std::ranges::equal(batch.Row("targets", 0).first(expected.size()), expected));
      EXPECT_EQ(batch.target_tokens, std::ssize(expected));
      EXPECT_TRUE(SharedRows().InputsOf(batch, 0).empty());
    }
  }
  EXPECT_EQ(row, data.example_count());
}

TEST(CausalLm, BatchesHaveNoEncoderTensors) {
  const Batch batch = Validation(DataConfig::CAUSAL_LM).Get(0, 2, 0, 2);
  std::set<std::string> names;
  for (const auto& [name, values] : batch.tensors()) {
    names.insert(name);
    EXPECT_EQ(values.size(), 2u * 64) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"decoder_ids", "decoder_positions", "decoder_prefix_ends",
                                          "decoder_segments", "targets"}));
}

TEST(PrefixLm, RowsAreThoseOfCausalLmAndTheirPrefixIsNotGiven) {
  const ValidationData causal = Validation(DataConfig::CAUSAL_LM),
                       prefix = Validation(DataConfig::PREFIX_LM);
  ASSERT_EQ(causal.example_count(), prefix.example_count());
  double share = 0;
  int64_t full = 0;
  for (int64_t i = 0; i < prefix.example_count(); ++i) {
    const Batch batch = prefix.Get(i, 1, 0, 1);
    const Ids sequence = SequenceOf(batch, 0);
    ASSERT_EQ(sequence, SequenceOf(causal.Get(i, 1, 0, 1), 0));
    const Ids inputs = SharedRows().InputsOf(batch, 0);
    const auto length = std::ssize(inputs);
    EXPECT_GE(length, sequence.size() > 1 ? 1 : 0);
    ASSERT_LT(length, std::ssize(sequence));
    EXPECT_TRUE(std::equal(inputs.begin(), inputs.end(), sequence.begin()));
    const std::span<const int32_t> targets = batch.Row("targets", 0);
    EXPECT_EQ(std::ranges::count(targets, kIgnoredTarget), length);
    EXPECT_TRUE(std::equal(sequence.begin() + length, sequence.end(), targets.begin() + length));
    EXPECT_EQ(batch.target_tokens, std::ssize(sequence) - length);
    if (sequence.size() < 64) continue;
    share += static_cast<double>(length);
    ++full;
  }
  ASSERT_GT(full, 100);
  // 1 to 63, all equally likely: one deviation of the mean is below 18.2 / 10.
  EXPECT_NEAR(share / static_cast<double>(full), 32, 6);
}

// Short rows share one; each example begins anew.
TEST(LanguageModels, PackedRowsKeepTheirExamplesApart) {
  for (const auto objective : {DataConfig::CAUSAL_LM, DataConfig::PREFIX_LM}) {
    const TrainingData data =
        TrainingData::Open(Config(objective), SharedRows(), T5(), SplitOf(PreparedSample()), 3);
    int64_t shared = 0;
    const int64_t rows = data.RowsOf(0)->size();
    const Batch batch = data.Get(0, rows, 0, rows);
    for (int64_t row = 0; row < rows; ++row) {
      const auto ids = batch.Row("decoder_ids", row), targets = batch.Row("targets", row),
                 segments = batch.Row("decoder_segments", row),
                 positions = batch.Row("decoder_positions", row),
                 ends = batch.Row("decoder_prefix_ends", row);
      shared += *std::ranges::max_element(segments) > 1;
      for (size_t t = 0; t < ids.size() && segments[t] > 0; ++t) {
        const bool begins = t == 0 || segments[t] != segments[t - 1];
        // Of those that read inputs, which begin with 0.
        const bool reads = begins || targets[t - 1] == kIgnoredTarget;
        EXPECT_EQ(ends[t] > static_cast<int32_t>(t), reads);
        if (!begins && ends[t - 1] > 0) {
          EXPECT_EQ(ends[t - 1], reads ? ends[t] : static_cast<int32_t>(t));
        }
        EXPECT_EQ(positions[t], begins ? 0 : positions[t - 1] + 1);
        if (begins) {
          EXPECT_EQ(ids[t], 0);
        } else if (targets[t - 1] != kIgnoredTarget) {
          EXPECT_EQ(ids[t], targets[t - 1]);
        } else {
          EXPECT_GT(ids[t], 0);
        }
      }
    }
    EXPECT_GT(shared, 5) << "nothing was packed";
  }
}

TEST(PrefixLm, IsCutElsewhereInTheNextEpoch) {
  const auto source = CorpusSource::Open(kTrainSplit, Config(DataConfig::PREFIX_LM), T5(),
                                         SplitOf(PreparedSample()), 1);
  const auto first = source->Epoch(0), second = source->Epoch(1);
  ASSERT_EQ(first->size(), second->size());
  int64_t same = 0;
  for (int64_t i = 0; i < first->size(); ++i) {
    EXPECT_EQ(first->LengthsOf(i), first->LengthsOf(i));
    same += first->LengthsOf(i) == second->LengthsOf(i);
  }
  EXPECT_LT(same, first->size() / 5);
}

}  // namespace
}  // namespace syntra
