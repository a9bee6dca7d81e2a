// SPDX-License-Identifier: Apache-2.0
#include "data/training_data.h"

#include <algorithm>
#include <map>
#include <set>

#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/corpus_source.h"
#include "data/segment_table.h"
#include "data/validation_data.h"
#include "tests/base/error_of.h"
#include "tests/data/corpus_files.h"
#include "tests/data/numbered_source.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

// The sample's training corpus itself, to compare with.
TokenCorpus OpenCorpus(const DataConfig& config, const Path& prepared) {
  return {SplitOf(prepared), T5(), config.text_field(), config.documents_per_group()};
}

// Tokens of a full segment of 512 inputs.
constexpr int64_t kSegmentTokens = 568;

TrainingData OpenSample(uint64_t seed = 1, const DataConfig& config = SampleConfig()) {
  return TrainingData::Open(config, SeparateRows(), T5(), SplitOf(PreparedSample()), seed);
}

TEST(KeyedPermutation, IsABijection) {
  for (const int64_t size : {1, 2, 3, 4, 5, 17, 1000, 4096, 4097, 100003}) {
    const KeyedPermutation permutation(size, {static_cast<uint32_t>(size), 2});
    std::vector<bool> seen(size);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t value = permutation(i);
      ASSERT_FALSE(seen[value]);
      seen[value] = true;
    }
  }
}

// Every place goes to every place about equally often over the keys.
TEST(KeyedPermutation, IsUniform) {
  constexpr int64_t kSize = 6;
  constexpr int kDraws = 36000;
  int counts[kSize][kSize] = {};
  for (int draw = 0; draw < kDraws; ++draw) {
    const KeyedPermutation permutation(kSize, DeriveKey(3, "test", draw));
    for (int64_t i = 0; i < kSize; ++i) ++counts[i][permutation(i)];
  }
  for (const auto& row : counts) {
    double chi_square = 0;
    for (const int count : row) chi_square += (count - 6000.0) * (count - 6000.0) / 6000.0;
    EXPECT_LT(chi_square, 25);  // 5 degrees of freedom, p = 0.00014
  }
}

TEST(KeyedPermutation, ReachesFarBeyond32Bits) {
  const int64_t size = int64_t{1} << 40;
  const KeyedPermutation permutation(size, {1, 2});
  std::set<int64_t> values;
  for (int64_t i = 0; i < 1000; ++i) values.insert(permutation(i));
  EXPECT_EQ(values.size(), 1000u);
  EXPECT_GT(*values.rbegin(), size / 2);
}

TEST(TrainingData, EveryWorldSizeSeesTheSameBatch) {
  const TrainingData data = OpenSample();
  for (const int64_t step : {0, 3, 200}) {  // the last one is some epochs later
    const Batch whole = data.Get(step, 8, 0, 8);
    for (const int64_t ranks : {2, 4, 8}) {
      Batch joined(0, data.input_length(), data.target_length());
      joined.first_example = step * 8;
      uint64_t checksum = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Batch part = data.Get(step, 8, rank * 8 / ranks, 8 / ranks);
        EXPECT_EQ(part.first_example, step * 8 + rank * 8 / ranks);
        checksum += LabelChecksum(part);
        Append(&joined, part);
      }
      ExpectEqual(joined, whole);
      EXPECT_EQ(checksum, LabelChecksum(whole));
    }
  }
}

TEST(TrainingData, ResumesAnywhere) {
  const TrainingData first = OpenSample();
  std::vector<Batch> batches;
  for (int64_t step = 0; step < 150; ++step) batches.push_back(first.Get(step, 16, 0, 16));
  const TrainingData resumed = OpenSample();
  for (const int64_t step : {149, 20, 77, 0})
    ExpectEqual(resumed.Get(step, 16, 0, 16), batches[step]);
}

// Counts how often the epochs of a source are asked for.
class CountedSource : public ExampleSource {
 public:
  explicit CountedSource(std::map<int64_t, int>* asked) : ExampleSource("counted"), asked_(asked) {}
  std::shared_ptr<const ExampleEpoch> Epoch(int64_t epoch) const override {
    ++(*asked_)[epoch];
    return source_.Epoch(epoch);
  }
  Digest ContentDigest() const override { return source_.ContentDigest(); }

 private:
  std::map<int64_t, int>* asked_;
  NumberedSource source_{"numbered", Numbers{.size = [](int64_t epoch) { return 20 + epoch % 3; },
                                             .lengths =
                                                 [](int64_t i) {
                                                   return ExampleLengths{1 + i % 5, 1};
                                                 }}};
};

TrainingData OpenCounted(std::map<int64_t, int>* asked) {
  return {std::make_shared<CountedSource>(asked),
          {.row = {8, 8}, .pack = true, .open_rows = 3, .trim = true},
          1};
}

TEST(TrainingData, APositionSavesTheEpochsBefore) {
  std::map<int64_t, int> asked;
  const TrainingData first = OpenCounted(&asked);
  std::vector<Batch> batches;
  for (int64_t step = 0; step < 60; ++step) batches.push_back(first.Get(step, 7, 0, 7));
  for (const int64_t step : {0, 1, 2, 13, 57}) {
    SCOPED_TRACE(step);
    asked.clear();
    TrainingData resumed = OpenCounted(&asked);
    const std::string position = first.PositionAt(step, 7);
    resumed.RestorePosition(position);
    // A save after the start gives the same again.
    EXPECT_EQ(resumed.PositionAt(step, 7), position);
    for (int64_t next = step; next < step + 3; ++next) {
      ExpectEqual(resumed.Get(next, 7, 0, 7), batches[next]);
    }
    EXPECT_LE(asked.size(), 7u) << "the first, which every start makes, and those of three steps";
    // What is before the position is found as ever.
    ExpectEqual(resumed.Get(0, 7, 0, 7), batches[0]);
    ExpectEqual(resumed.Get(59, 7, 0, 7), batches[59]);
  }
  // No rank needs to have seen the row that decides it.
  EXPECT_EQ(OpenCounted(&asked).PositionAt(57, 7), first.PositionAt(57, 7));
}

TEST(TrainingData, RefusesWhatIsNoPosition) {
  std::map<int64_t, int> asked;
  TrainingData data = OpenCounted(&asked);
  for (const char* text : {"1", "1 2 3", "a b", "-1 0", "3 2", "0 5", "2 0", "1  9"}) {
    EXPECT_THROW(data.RestorePosition(text), Error) << text;
  }
  data.RestorePosition("0 0");
}

TEST(TrainingData, ThreadsDoNotMatter) {
  const TrainingData data = OpenSample();
  const int threads = ThreadCount();
  const Batch many = data.Get(5, 64, 0, 64);
  SetThreadCount(1);
  ExpectEqual(data.Get(5, 64, 0, 64), many);
  SetThreadCount(threads);
}

TEST(TrainingData, SeedsAndEpochsDiffer) {
  const TrainingData one = OpenSample(1), two = OpenSample(2);
  EXPECT_NE(one.Get(0, 8, 0, 8)["targets"], two.Get(0, 8, 0, 8)["targets"]);
  // The same segment is masked differently in the next epoch.
  const auto first = one.RowsOf(0), second = one.RowsOf(1);
  std::map<int64_t, int64_t> row_of_segment;
  for (int64_t row = 0; row < second->size(); ++row) {
    row_of_segment[second->ExamplesOf(row)[0]] = row;
  }
  const int64_t segment = first->ExamplesOf(0)[0];
  const int64_t base = first->size();
  EXPECT_NE(one.Get(0, 1, 0, 1)["targets"],
            one.Get(base + row_of_segment.at(segment), 1, 0, 1)["targets"]);
}

TEST(TrainingData, AnEpochHoldsEverySegmentOnce) {
  for (const bool pack : {true, false}) {
    for (const int documents_per_group : {1, 7, 128, 100000}) {
      DataConfig config = SampleConfig();
      config.set_pack(pack);
      config.set_documents_per_group(documents_per_group);
      const TrainingData data = OpenSample(4, config);
      const TokenCorpus corpus = OpenCorpus(config, PreparedSample());
      for (const int64_t epoch : {0, 1}) {
        const SegmentTable table(corpus, {.tokens = kSegmentTokens}, 4, epoch);
        const auto rows = data.RowsOf(epoch);
        std::vector<int> seen(table.segment_count());
        int64_t tokens = 0;
        for (int64_t row = 0; row < rows->size(); ++row) {
          const std::vector<int64_t> segments = rows->ExamplesOf(row);
          EXPECT_TRUE(pack || segments.size() == 1);
          for (const int64_t segment : segments) {
            ++seen.at(segment);
            tokens += table.LengthOf(segment);
          }
        }
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
        EXPECT_EQ(tokens, SplitOf(PreparedSample()).index.tokens());
      }
    }
  }
}

// Puts the spans of the targets back into the inputs and compares with the corpus.
TEST(TrainingData, RowsHoldTheirSegments) {
  DataConfig config = SampleConfig();
  config.set_documents_per_group(2);  // many short segments
  const TrainingData data = OpenSample(1, config);
  const TokenCorpus corpus = OpenCorpus(config, PreparedSample());
  const SegmentTable table(corpus, {.tokens = kSegmentTokens}, 1, 0);
  const auto rows = data.RowsOf(0);
  int64_t packed_rows = 0;
  for (int64_t row = 0; row < rows->size(); ++row) {
    const Batch batch = data.Get(row, 1, 0, 1);
    const std::vector<int64_t> segments = rows->ExamplesOf(row);
    packed_rows += segments.size() > 1;
    for (size_t i = 0; i < segments.size(); ++i) {
      const auto id = static_cast<int32_t>(i + 1);
      std::map<int32_t, Ids> spans;
      int32_t sentinel = 0, position = 0, previous = 0;
      for (int64_t t = 0; t < batch.target_length; ++t) {
        if (batch["decoder_segments"][t] != id) continue;
        EXPECT_EQ(batch["decoder_positions"][t], position++);
        EXPECT_EQ(batch["decoder_ids"][t], previous);
        const int32_t target = previous = batch["targets"][t];
        if (target >= 32000) {
          sentinel = target;
        } else if (target != 1) {
          spans[sentinel].push_back(target);
        }
      }
      EXPECT_EQ(previous, 1);
      Ids restored;
      position = 0;
      for (int64_t s = 0; s < batch.input_length; ++s) {
        if (batch["encoder_segments"][s] != id) continue;
        EXPECT_EQ(batch["encoder_positions"][s], position++);
        const int32_t input = previous = batch["encoder_ids"][s];
        if (input >= 32000) {
          restored.insert(restored.end(), spans[input].begin(), spans[input].end());
        } else if (input != 1) {
          restored.push_back(input);
        }
      }
      EXPECT_EQ(previous, 1);
      Ids expected(table.LengthOf(segments[i]));
      table.CopyTokens(segments[i], expected);
      ASSERT_EQ(restored, expected);
    }
    int64_t targets = 0;
    for (int64_t t = 0; t < batch.target_length; ++t) {
      targets += batch["targets"][t] > 0;
      const bool padding = batch["decoder_segments"][t] == 0;
      EXPECT_EQ(padding, batch["targets"][t] == 0);
      if (padding) {
        EXPECT_EQ(batch["decoder_ids"][t] + batch["decoder_positions"][t], 0);
      }
    }
    EXPECT_EQ(batch.target_tokens, targets);
    for (int64_t s = 0; s < batch.input_length; ++s) {
      EXPECT_EQ(batch["encoder_segments"][s] == 0, batch["encoder_ids"][s] == 0);
    }
  }
  EXPECT_GT(packed_rows, 50);
}

TEST(TrainingData, FullRowsAreExactlyFull) {
  const TrainingData data = OpenSample();
  EXPECT_EQ(data.input_length(), 512);
  EXPECT_EQ(data.target_length(), 114);
  const TokenCorpus corpus = OpenCorpus(SampleConfig(), PreparedSample());
  const SegmentTable table(corpus, {.tokens = kSegmentTokens}, 1, 0);
  const auto rows = data.RowsOf(0);
  for (int64_t row = 0; row < rows->size(); ++row) {
    if (table.LengthOf(rows->ExamplesOf(row)[0]) != kSegmentTokens) continue;
    const Batch batch = data.Get(row, 1, 0, 1);
    ASSERT_EQ(batch["encoder_ids"].back(), 1);
    ASSERT_EQ(batch["targets"].back(), 1);
    ASSERT_EQ(batch.target_tokens, 114);
    ASSERT_EQ(batch["targets"][0], 32099);
  }
}

TEST(TrainingData, LongDocumentsGiveOneChunkAnEpoch) {
  const Path directory = ScratchDirectory("long_document");
  std::string content;
  for (int document = 0; document < 3; ++document) {
    content += fmt::format("start {}", document);
    if (document == 1) {
      for (int i = 0; i < 150000; ++i) content += " a";
    }
    content += '\n';
  }
  DataConfig config = SampleConfig();
  config.clear_train();
  config.add_train(WriteScratch(directory / "long.txt", content).string());
  const PrepareResult prepared = PrepareCorpus(TrainingPreparation(config, directory), T5());
  ASSERT_GT(prepared.index.tokens(), 2 * kMaxDocumentTokens);
  const TrainingData data = TrainingData::Open(config, SeparateRows(), T5(), SplitOf(directory), 1);
  const TokenCorpus corpus = OpenCorpus(config, directory);
  std::set<int64_t> totals;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    const SegmentTable segments(corpus, {.tokens = kSegmentTokens}, 1, epoch);
    EXPECT_EQ(data.RowsOf(epoch)->examples().size(), segments.segment_count());
    int64_t total = 0;
    for (int64_t segment = 0; segment < segments.segment_count(); ++segment) {
      Ids tokens(segments.LengthOf(segment));
      segments.CopyTokens(segment, tokens);
      total += tokens.size();
      if (segment == 0) {
        EXPECT_EQ(tokens[0], T5().Encode("start")[0]);
      }
    }
    totals.insert(total);
    for (int64_t row = 0; row < data.RowsInEpoch(epoch); ++row) data.Get(row, 1, 0, 1);
  }
  EXPECT_LE(*totals.rbegin(), kMaxDocumentTokens + 20);
  EXPECT_GT(totals.size(), 1u);  // the document's last chunk is shorter
}

TEST(TrainingData, TinyCorporaRepeatWithinABatch) {
  const Path directory = ScratchDirectory("tiny");
  DataConfig config = SampleConfig();
  config.clear_train();
  config.add_train(WriteScratch(directory / "tiny.txt", "one two three\n").string());
  PrepareCorpus(TrainingPreparation(config, directory), T5());
  const TrainingData data = TrainingData::Open(config, SeparateRows(), T5(), SplitOf(directory), 1);
  EXPECT_EQ(data.RowsInEpoch(0), 1);
  const Batch batch = data.Get(1000, 5, 0, 5);
  for (int64_t row = 0; row < 5; ++row) EXPECT_GT(batch["encoder_ids"][row * 512], 0);
}

// Two configurations may share a directory of shards, whose INDEX.json lists those of the last one.
TEST(TrainingData, HasTheShardsOfItsOwnPreparation) {
  const Path directory = ScratchDirectory("shared_shards");
  std::vector<PreparedCorpus> prepared;
  std::vector<DataConfig> configs;
  for (const std::string name : {"one", "two"}) {
    DataConfig& config = configs.emplace_back(SampleConfig());
    config.clear_train();
    config.add_train(WriteScratch(directory / (name + ".txt"), name + '\n').string());
    prepared.push_back(PrepareCorpus(TrainingPreparation(config, directory), T5()));
  }
  const auto digest_of = [&](size_t i) {
    return TrainingData::Open(configs[i], SeparateRows(), T5(), prepared[i], 1).ContentDigest();
  };
  EXPECT_NE(digest_of(0), digest_of(1));
  EXPECT_EQ(SplitOf(directory).index, prepared[1].index);
}

TEST(TrainingData, RefusesWhatDoesNotBelongTogether) {
  PreparedSample();
  const Tokenizer other(SamplePath("spiece.model"), 50);
  EXPECT_NE(DataErrorOf([&] {
              TrainingData::Open(SampleConfig(), SeparateRows(), other, SplitOf(PreparedSample()),
                                 1);
            }).find("prepared with another data.text_field or data.extra_ids"),
            std::string::npos);
  DataErrorOf([&] {
    TrainingData::Open(SampleConfig(), SeparateRows(), T5(), SplitOf("/nonexistent"), 1);
  });

  const Path copy = ScratchDirectory("mixed_up");
  std::filesystem::copy(PreparedSample(), copy, std::filesystem::copy_options::recursive);
  const Path train = copy / "train/c4-train.00000-of-00001.json.gz.tokens";
  std::filesystem::copy_file(copy / "validation/c4-validation.00000-of-00001.json.gz.tokens", train,
                             std::filesystem::copy_options::overwrite_existing);
  const std::string mixed = DataErrorOf(
      [&] { TrainingData::Open(SampleConfig(), SeparateRows(), T5(), SplitOf(copy), 1); });
  EXPECT_NE(mixed.find("is not the shard that the index lists"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("compare the corpus files"), std::string::npos) << mixed;
  std::filesystem::remove(train);
  EXPECT_NE(DataErrorOf([&] {
              TrainingData::Open(SampleConfig(), SeparateRows(), T5(), SplitOf(copy), 1);
            }).find("is missing"),
            std::string::npos);

  std::filesystem::remove(train);
  TokenShardWriter forged(train, 65536);
  forged.AddDocument(Ids{5, 32100});
  ShardFacts facts;
  CorpusIndex index = ReadIndex(copy / "train");
  index.shards[0].digest = ToHex(forged.Commit(&facts));
  WriteIndex(copy / "train", index);
  EXPECT_NE(
      DataErrorOf([&] {
        TrainingData::Open(SampleConfig(), SeparateRows(), T5(), SplitOf(copy), 1).Get(0, 1, 0, 1);
      }).find("token id 32100 is outside the vocabulary of 32100"),
      std::string::npos);

  DataConfig many_spans = SampleConfig();
  many_spans.set_input_length(4096);
  const std::string error = ErrorOf([&] { OpenSample(1, many_spans); }, ExitCode::kConfig);
  EXPECT_NE(error.find("set extra_ids to at least"), std::string::npos);
}

TEST(ValidationData, IsUnpackedInOrderAndFixed) {
  const ValidationData data = ValidationData::Open(SampleConfig(), SeparateRows(), T5(),
                                                   SplitOf(PreparedSample(), kValidationSplit));
  const ValidationData again = ValidationData::Open(SampleConfig(), SeparateRows(), T5(),
                                                    SplitOf(PreparedSample(), kValidationSplit));
  EXPECT_GT(data.example_count(), 100);
  EXPECT_EQ(data.BatchCount(16), data.example_count() / 16);
  uint64_t checksum = 0, parts = 0;
  int64_t full = 0;
  for (int64_t i = 0; i < data.BatchCount(16); ++i) {
    const Batch batch = data.Get(i, 16, 0, 16);
    ExpectEqual(batch, again.Get(i, 16, 0, 16));
    EXPECT_EQ(*std::max_element(batch["encoder_segments"].begin(), batch["encoder_segments"].end()),
              1);
    full += std::count(batch["encoder_ids"].begin(), batch["encoder_ids"].end(), 0) == 0;
    checksum += LabelChecksum(batch);
    for (int64_t rank = 0; rank < 4; ++rank) parts += LabelChecksum(data.Get(i, 16, rank * 4, 4));
  }
  EXPECT_GT(full, 0);
  EXPECT_EQ(checksum, parts);
  EXPECT_NE(checksum, 0u);
  // The first row begins with the first document.
  const Batch first = data.Get(0, 4, 0, 4);
  const Ids ids = T5().Encode("The woman who died");
  EXPECT_EQ(first["encoder_ids"][0], ids[0]);
}

// Pinned: any change to tokens, order, masks or keys would make earlier runs impossible to repeat.
TEST(LabelChecksum, OfTheSampleIsPinned) {
  const ValidationData validation = ValidationData::Open(
      SampleConfig(), SeparateRows(), T5(), SplitOf(PreparedSample(), kValidationSplit));
  EXPECT_EQ(fmt::format("{:016x}", LabelChecksum(validation.Get(0, 16, 0, 16))),
            "c3d030febbbb92a9");
  EXPECT_EQ(fmt::format("{:016x}", LabelChecksum(OpenSample().Get(0, 16, 0, 16))),
            "42b019082d65062e");
}

}  // namespace
}  // namespace syntra
