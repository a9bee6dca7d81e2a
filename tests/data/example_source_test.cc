// SPDX-License-Identifier: Apache-2.0
// What every objective and every source must do, whatever it is: a new one gets its row in
// `Objectives` or `Sources` below and is held to all of it.
#include "data/example_source.h"

#include <map>
#include <numeric>

#include "data/corpus_source.h"
#include "data/mixture.h"
#include "data/table_source.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "tests/base/error_of.h"
#include "tests/data/corpus_files.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

using Ids = std::vector<int32_t>;

struct Example {
  Ids inputs, targets;
  bool operator==(const Example&) const = default;
};

// The ids that `write` gives for the lengths, and proof that it stays inside of them.
template <typename Write>
Example Written(const ExampleLengths& lengths, const Write& write) {
  constexpr int32_t kUntouched = -7;
  Ids inputs(lengths.inputs + 2, kUntouched), targets(lengths.targets + 2, kUntouched);
  write(ExampleSlots{std::span(inputs).subspan(1, lengths.inputs),
                     std::span(targets).subspan(1, lengths.targets)});
  const auto inside = [&](Ids ids) {
    EXPECT_EQ(ids.front(), kUntouched);
    EXPECT_EQ(ids.back(), kUntouched);
    ids.erase(ids.begin());
    ids.pop_back();
    EXPECT_TRUE(
        std::ranges::all_of(ids, [](int32_t id) { return id > 0 || id == kIgnoredTarget; }));
    return ids;
  };
  return {inside(inputs), inside(targets)};
}

void ExpectEnds(const Example& example) {
  for (const Ids& ids : {example.inputs, example.targets}) {
    EXPECT_EQ(ids.empty() ? 0 : ids.back(), T5().eos_id());
  }
}

Example ExampleOf(const ExampleEpoch& epoch, int64_t i) {
  return Written(epoch.LengthsOf(i), [&](const ExampleSlots& slots) { epoch.Write(i, slots); });
}

// How often each id of the data occurs, whatever an objective adds to it.
std::map<int32_t, int> CountsOf(std::initializer_list<Ids> lists) {
  std::map<int32_t, int> counts;
  for (const Ids& ids : lists) {
    for (const int32_t id : ids) {
      if (id != T5().eos_id() && id < T5().SentinelId(T5().extra_ids() - 1)) ++counts[id];
    }
  }
  return counts;
}

DataConfig SmallConfig(bool pack) {
  DataConfig config = SampleConfig();
  config.set_input_length(96);
  config.set_target_length(40);
  config.set_documents_per_group(2);
  config.set_pack(pack);
  return config;
}

std::vector<std::string> ObjectiveNames() {
  return {
#define SYNTRA_OBJECTIVE(name) #name,
#define SYNTRA_CORPUS_OBJECTIVE(kind, name) SYNTRA_OBJECTIVE(name)
#include "data/objectives.def"
#undef SYNTRA_CORPUS_OBJECTIVE
#undef SYNTRA_OBJECTIVE
  };
}

class Objectives : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Objective> Make() const {
    return MakeObjective(GetParam(), ObjectiveSettings::From(SmallConfig(true), T5()));
  }
};

INSTANTIATE_TEST_SUITE_P(All, Objectives, testing::ValuesIn(ObjectiveNames()),
                         [](const auto& info) { return info.param; });

TEST_P(Objectives, KeepTheirPromises) {
  const std::unique_ptr<Objective> objective = Make();
  const bool takes_text = objective->segment_tokens() > 0, classes = GetParam() == "classification";
  const ExampleLengths row = RowLengths(SmallConfig(true));
  int64_t whole = 0, cut = 0;
  for (int32_t draw = 0; draw < 500; ++draw) {
    Ids inputs(takes_text ? 0 : draw % 130), targets(takes_text ? 1 + draw : draw % 61);
    if (takes_text) targets.resize(1 + draw % objective->segment_tokens());
    if (classes) targets.resize(1);
    std::iota(inputs.begin(), inputs.end(), 100);
    std::iota(targets.begin(), targets.end(), 5000);
    const ExampleLengths raw{std::ssize(inputs), std::ssize(targets)};
    const auto make = [&](RandomKey key) {
      const ExampleLengths lengths = objective->LengthsOf(raw, key);
      EXPECT_TRUE(lengths.FitIn(row));
      return Written(lengths, [&](const ExampleSlots& slots) {
        objective->Write({inputs, targets}, key, slots);
      });
    };
    const RandomKey key{static_cast<uint32_t>(draw), 1}, other{static_cast<uint32_t>(draw), 2};
    const Example example = make(key);
    // Those that mark documents have an EOS only where one ends.
    if (classes) {
      EXPECT_EQ(example.targets, targets);
    } else if (!objective->marks_documents()) {
      ExpectEnds(example);
    }
    EXPECT_EQ(make(key), example);
    if (!takes_text) {
      EXPECT_EQ(make(other), example);
    }
    if (GetParam() == "masked_lm") {
      ++whole;  // what becomes of its tokens: masked_lm_test.cc
      continue;
    }
    const bool kept = CountsOf({example.inputs, example.targets}) == CountsOf({inputs, targets});
    EXPECT_EQ(kept, !objective->Cuts(raw)) << raw.inputs << " " << raw.targets;
    ++(kept ? whole : cut);
  }
  EXPECT_GT(whole, 100);
  EXPECT_EQ(cut == 0, takes_text);
}

TEST(MakeObjective, NamesTheNearest) {
  const std::string error = ErrorOf([&] { MakeObjective("text_2_text", {}); }, ExitCode::kConfig);
  EXPECT_NE(error.find("text_to_text"), std::string::npos) << error;
}

TEST(SpanCorruptionObjective, NeedsRoomForItsTargets) {
  DataConfig config = SampleConfig();
  config.set_target_length(113);
  const std::string error =
      ErrorOf([&] { MakeObjective("span_corruption", ObjectiveSettings::From(config, T5())); },
              ExitCode::kConfig);
  EXPECT_NE(error.find("data.target_length 113 has no room for the 114"), std::string::npos)
      << error;
}

// The kinds of sources under every objective that they can have.
using SourcePtr = std::shared_ptr<const ExampleSource>;
struct Kind {
  std::string name;
  SourcePtr (*make)();
};

// Up to 40 numbers.
std::string Words(int i) {
  std::string text;
  for (int word = 0; word < i % 41; ++word) text += fmt::format("{} ", i * word);
  return text;
}

SourcePtr MakeCorpus() {
  static const Path prepared = [] {
    const Path directory = ScratchDirectory("small_corpus");
    std::string documents;
    for (int i = 0; i < 60; ++i) documents += fmt::format("{} document {}\n", Words(i), i);
    DataConfig config = SmallConfig(true);
    config.clear_train();
    config.add_train(WriteScratch(directory / "small.txt", documents).string());
    PrepareCorpus(TrainingPreparation(config, directory), T5());
    return directory;
  }();
  return CorpusSource::Open(kTrainSplit, SmallConfig(true), T5(), SplitOf(prepared), 3);
}

SourcePtr MakeTable() {
  std::vector<TextPair> pairs;
  for (int i = 0; i < 121; ++i) pairs.push_back({"number: " + Words(i), fmt::format("{}", i)});
  return std::make_shared<TableSource>(
      "table", pairs, T5(),
      MakeObjective("text_to_text", ObjectiveSettings::From(SmallConfig(true), T5())));
}

SourcePtr MakeMixture() {
  return std::make_shared<Mixture>("mixture", std::vector{MakeTable(), MakeCorpus(), MakeTable()},
                                   MixtureRates{.limit = 100, .temperature = 2}, 5);
}

class Sources : public testing::TestWithParam<Kind> {
 protected:
  static const SourcePtr& Source() {
    static std::map<std::string, SourcePtr> made;
    SourcePtr& source = made[GetParam().name];
    if (!source) source = GetParam().make();
    return source;
  }
  // As corpora are packed, as tasks are, and as tasks are without packing.
  static std::vector<RowPacking> Packings() {
    return {RowPacking::OfCorpus(SmallConfig(true), SeparateRows()),
            RowPacking::OfExamples(SmallConfig(true), SeparateRows()),
            RowPacking::OfExamples(SmallConfig(false), SeparateRows())};
  }
};

INSTANTIATE_TEST_SUITE_P(All, Sources,
                         testing::Values(Kind{"corpus", MakeCorpus}, Kind{"table", MakeTable},
                                         Kind{"mixture", MakeMixture}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Sources, ExamplesAreAsLongAsPromised) {
  const ExampleLengths row = RowLengths(SmallConfig(true));
  for (const int64_t epoch : {0, 1, 5}) {
    const auto examples = Source()->Epoch(epoch), again = Source()->Epoch(epoch);
    ASSERT_EQ(examples->size(), again->size());
    for (int64_t i = 0; i < examples->size(); ++i) {
      EXPECT_TRUE(examples->LengthsOf(i).FitIn(row));
      const Example example = ExampleOf(*examples, i);
      ASSERT_EQ(example, ExampleOf(*again, i));
      ExpectEnds(example);
    }
  }
  EXPECT_EQ(GetParam().make()->ContentDigest(), Source()->ContentDigest());
}

TEST_P(Sources, FullAndShortExamplesAreAllThereIs) {
  const auto examples = Source()->Epoch(1);
  std::vector<int> seen(examples->size());
  for (int64_t i = 0; i < examples->full_count(); ++i) ++seen.at(examples->FullExample(i));
  for (int64_t i = 0; i < examples->size() - examples->full_count(); ++i) {
    ++seen.at(examples->ShortExample(i));
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int count) { return count == 1; }));
}

// Rows of an epoch in the order in which a batch has them.
std::vector<int64_t> InOrder(const PackedEpoch& epoch, const RowPacking& packing,
                             std::vector<int64_t> rows) {
  const auto shape = [&](int64_t row) {
    const ExampleLengths lengths = epoch.LengthsOf(row);
    return std::pair(lengths.inputs, lengths.targets);
  };
  if (packing.Trims()) std::ranges::stable_sort(rows, {}, shape);
  return rows;
}

// Every id of a row's examples stands in the row, in segments that count from 1.
TEST_P(Sources, RowsHoldTheirExamples) {
  for (const RowPacking& packing : Packings()) {
    const TrainingData data(Source(), packing, 9);
    const auto rows = data.RowsOf(0);
    for (int64_t step = 0; step < rows->size() / 2; ++step) {
      const Batch batch = data.Get(step, 2, 0, 2);
      ASSERT_TRUE((ExampleLengths{batch.input_length, batch.target_length}).FitIn(packing.row));
      Batch expected(2, batch.input_length, batch.target_length);
      expected.first_example = step * 2;
      const std::vector<int64_t> ordered = InOrder(*rows, packing, {step * 2, step * 2 + 1});
      for (int64_t row = 0; row < 2; ++row) {
        int32_t segment = 0;
        int64_t in = row * batch.input_length, out = row * batch.target_length;
        for (const int64_t i : rows->ExamplesOf(ordered[row])) {
          const Example example = ExampleOf(rows->examples(), i);
          ++segment;
          for (int32_t place = 0; const int32_t id : example.inputs) {
            expected["encoder_ids"].at(in) = id;
            expected["encoder_segments"].at(in) = segment;
            expected["encoder_positions"].at(in++) = place++;
          }
          for (int32_t place = 0, previous = 0; const int32_t id : example.targets) {
            expected["targets"].at(out) = id;
            expected["decoder_ids"].at(out) = std::exchange(previous, id);
            expected["decoder_segments"].at(out) = segment;
            expected["decoder_positions"].at(out++) = place++;
            ++expected.target_tokens;
          }
        }
        EXPECT_TRUE(packing.pack || segment == 1);
      }
      ExpectEqual(batch, expected);
    }
  }
}

TEST_P(Sources, RanksAndTheStartDoNotMatter) {
  constexpr int64_t kRows = 12;
  for (const RowPacking& packing : Packings()) {
    const TrainingData data(Source(), packing, 9);
    const int64_t last = 3 * data.RowsInEpoch(0) / kRows;  // some epochs later
    for (const int64_t step : {last, int64_t{0}, last / 2}) {
      const Batch whole = data.Get(step, kRows, 0, kRows);
      // Rows of equal shares, of unequal ones, and of a process that begins here.
      for (const std::vector<int64_t>& shares :
           {std::vector<int64_t>{6, 6}, {4, 4, 4}, {1, 0, 5, 6}, {12}}) {
        const TrainingData resumed(Source(), packing, 9);
        Batch joined(0, whole.input_length, whole.target_length);
        joined.first_example = step * kRows;
        int64_t first = 0;
        for (const int64_t share : shares) {
          const Batch part = resumed.Get(step, kRows, first, share);
          EXPECT_EQ(part.first_example, step * kRows + first);
          Append(&joined, part);
          first += share;
        }
        ExpectEqual(joined, whole);
        EXPECT_EQ(LabelChecksum(joined), LabelChecksum(whole));
      }
    }
  }
}

// In the order of the data, one a row, whole or in parts.
TEST_P(Sources, EvaluationGoesThroughEpochZero) {
  for (const RowPacking& packing : Packings()) {
    const ValidationData data(Source(), packing);
    EXPECT_EQ(data.name(), Source()->name());
    const auto examples = Source()->Epoch(0);
    ASSERT_EQ(data.example_count(), examples->size());
    for (int64_t first = 0; first < data.example_count(); first += 7) {
      const int64_t rows = std::min<int64_t>(7, data.example_count() - first);
      const Batch batch = data.Examples(first, rows);
      EXPECT_EQ(batch.rows, rows);
      EXPECT_EQ(batch.first_example, first);
      ExampleLengths longest;
      for (int64_t i = first; i < first + rows; ++i) {
        longest = Longest(longest, examples->LengthsOf(i));
      }
      EXPECT_EQ(batch.input_length, packing.trim ? PaddedLength(longest.inputs, packing.row.inputs)
                                                 : packing.row.inputs);
      for (int64_t row = 0; row < rows; ++row) {
        const Example example = ExampleOf(*examples, first + row);
        const std::span<const int32_t> slots =
            std::span(batch["targets"]).subspan(row * batch.target_length, batch.target_length);
        const size_t length = example.targets.size();
        EXPECT_TRUE(std::ranges::equal(slots.first(length), example.targets));
        EXPECT_EQ(std::ranges::count(slots.subspan(length), 0), std::ssize(slots.subspan(length)));
      }
    }
  }
}

TEST(TrainingData, RefusesASourceWithoutExamples) {
  const auto empty = std::make_shared<TableSource>(
      "cola", std::span<const TextPair>(), T5(),
      MakeObjective("text_to_text", ObjectiveSettings::From(SmallConfig(true), T5())));
  const std::string error = ErrorOf(
      [&] { TrainingData(empty, RowPacking::OfExamples(SmallConfig(true), SeparateRows()), 1); },
      ExitCode::kData);
  EXPECT_EQ(error, "cola has no examples");
}

}  // namespace
}  // namespace syntra
