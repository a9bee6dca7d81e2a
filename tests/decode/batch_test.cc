// SPDX-License-Identifier: Apache-2.0
// Many requests in batches, alone, and shared by ranks; scores of given targets.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "core/random.h"
#include "decode/batch_decoder.h"
#include "decode/decoding_trial.h"
#include "decode/scorer.h"
#include "decode/share.h"
#include "dist/self.h"

namespace syntra {
namespace {

constexpr int64_t kInputLength = 16, kOutputLength = 10, kVocabulary = 32;

using Ids = std::vector<int32_t>;

Ids SomeIds(int64_t length, uint32_t seed) {
  Ids ids;
  for (int64_t i = 0; i + 1 < length; ++i) {
    ids.push_back(static_cast<int32_t>(3 + UniformBelow(RandomAt({seed, 8}, i)[0], 29)));
  }
  ids.push_back(1);
  return ids;
}

// Inputs of all lengths, in no order.
std::vector<DecodeRequest> SomeRequests(int count) {
  std::vector<DecodeRequest> requests;
  for (int i = 0; i < count; ++i) {
    requests.push_back({SomeIds(1 + i * 7 % kInputLength, i), {}});
  }
  return requests;
}

class Batches : public testing::Test {
 protected:
  Batches() : trial_(TinyModel(TrialMixers().at("random_and_dot"), kUntied)) {}

  // The ends of outputs are all that it is asked for, and its EOS is 1, as in T5's models.
  static const Tokenizer& AnyTokenizer() {
    static const Tokenizer tokenizer(SYNTRA_SOURCE_DIR "/data/sample/spiece.model", 100);
    return tokenizer;
  }
  BatchDecoder Decoder(const std::string& decoding) {
    return BatchDecoder(trial_.Trained(), AnyTokenizer(),
                        {.decoding = DecodingOf(decoding),
                         .input_length = kInputLength,
                         .output_length = kOutputLength,
                         .log_probabilities = true});
  }

  DecodingTrial trial_;
};

TEST_F(Batches, AnOutputDoesNotDependOnItsNeighbours) {
  const std::vector<DecodeRequest> requests = SomeRequests(45);
  for (const std::string& decoding : TrialDecodings()) {
    BatchDecoder decoder = Decoder(decoding);
    const std::vector<Hypotheses> together = decoder.Decode(requests);
    ASSERT_EQ(together.size(), requests.size());
    for (const size_t i : {0, 1, 17, 44}) {
      const Hypotheses alone = decoder.Decode(std::span(&requests[i], 1)).front();
      ASSERT_EQ(alone.size(), together[i].size());
      for (size_t k = 0; k < alone.size(); ++k) {
        EXPECT_EQ(alone[k].ids, together[i][k].ids) << decoding << ", request " << i;
        EXPECT_NEAR(alone[k].log_probability, together[i][k].log_probability, 1e-5);
      }
    }
  }
}

// Larger batches after smaller ones, as lines come in: the caches move. With several decoders the
// new ones do not lie where the old ones were.
TEST_F(Batches, CachesMayGrow) {
  const std::vector<DecodeRequest> requests = SomeRequests(45);
  const auto first = [&](size_t count) { return std::span(requests).first(count); };
  std::vector<std::unique_ptr<BatchDecoder>> decoders;
  std::vector<std::vector<Hypotheses>> before;
  for (const std::string& decoding : TrialDecodings()) {
    decoders.emplace_back(new BatchDecoder(Decoder(decoding)));  // it cannot be moved
    before.push_back(decoders.back()->Decode(first(4)));
  }
  for (const auto& decoder : decoders) decoder->Decode(first(45));
  for (size_t i = 0; i < decoders.size(); ++i) {
    EXPECT_EQ(decoders[i]->Decode(first(4)), before[i]) << TrialDecodings()[i];
  }
}

// Only those that are settled are cut, with the token that settled them.
TEST_F(Batches, OutputsEndWhereTheyAreSettled) {
  std::vector<DecodeRequest> requests = SomeRequests(12);
  BatchDecoder decoder = Decoder("greedy {}");
  const std::vector<Hypotheses> whole = decoder.Decode(requests);
  for (size_t i = 0; i < requests.size(); i += 2) {
    requests[i].is_settled = [](std::span<const int32_t> ids) { return ids.size() >= 3; };
  }
  const std::vector<Hypotheses> cut = decoder.Decode(requests);
  int shorter = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    Ids expected = whole[i].front().ids;
    if (i % 2 == 0 && expected.size() > 3) {
      expected.resize(3);
      ++shorter;
    }
    EXPECT_EQ(cut[i].front().ids, expected) << "request " << i;
  }
  EXPECT_GT(shorter, 0);
}

TEST_F(Batches, EqualInputsHaveEqualSamples) {
  std::vector<DecodeRequest> requests = SomeRequests(5);
  requests.push_back(requests[2]);
  const auto outputs = Decoder("sample {} outputs: 3").Decode(requests);
  EXPECT_EQ(outputs[2], outputs[5]);
  EXPECT_NE(outputs[2], outputs[3]);
}

TEST_F(Batches, MaxLengthCounts) {
  for (const Hypotheses& output : Decoder("max_length: 3").Decode(SomeRequests(3))) {
    EXPECT_LE(output.front().ids.size(), 3u);
  }
  EXPECT_TRUE(Decoder("").Decode({}).empty());
}

std::vector<ScoreRequest> SomeTargets(int count, int targets) {
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < count; ++i) {
    ScoreRequest request{SomeIds(2 + i * 5 % (kInputLength - 2), i), {}};
    for (int k = 0; k < targets; ++k) {
      request.targets.push_back(SomeIds(1 + (3 * i + 2 * k) % kOutputLength, 100 * i + k));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

// The sum that evaluation reports, of one example.
double Evaluated(DecodingTrial& trial, const Ids& input, const Ids& target) {
  TrialBatch batch = RandomBatch(
      {1, static_cast<int64_t>(input.size()), static_cast<int64_t>(target.size())}, kVocabulary);
  batch.encoder_ids = input;
  batch.targets = target;
  batch.decoder_ids.assign(1, 0);
  batch.decoder_ids.insert(batch.decoder_ids.end(), target.begin(), target.end() - 1);
  Executable program(EvaluationProgram(trial.model, trial.parameters, DType::kF32, batch.shape),
                     FastBackend(), trial.memory.arenas());
  SetBatch(batch, program);
  const float one = 1;
  program.SetInput("inverse_denominator", std::span(&one, 1));
  program.Run();
  return Numbers(program.Tensor("statistics"))[0];
}

class Scores : public testing::TestWithParam<std::pair<const std::string, std::string>> {};

// Labels that share an encoder pass have the log-perplexity that evaluation gives each alone.
TEST_P(Scores, AreWhatEvaluationGives) {
  DecodingTrial trial(TinyModel(GetParam().second, kUntied));
  Scorer scorer(trial.Trained(), {.input_length = kInputLength, .output_length = kOutputLength});
  for (const int targets : {1, 3}) {
    const std::vector<ScoreRequest> requests = SomeTargets(7, targets);
    const auto scores = scorer.Score(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(scores[i].size(), requests[i].targets.size());
      for (int k = 0; k < targets; ++k) {
        const double expected = -Evaluated(trial, requests[i].ids, requests[i].targets[k]);
        EXPECT_NEAR(scores[i][k], expected, 1e-5 * (1 + std::abs(expected)))
            << "request " << i << ", target " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixers, Scores, testing::ValuesIn(TrialMixers()),
                         [](const auto& info) { return info.param.first; });

TEST_F(Batches, ScoringTakesModelsThatCannotGenerate) {
  DecodingTrial by_position(
      TinyModel("attention { heads: 2 head_size: 8 index_by: SEGMENT_POSITION term { random { "
                "max_length: 16 } } }"));
  const ScoreRequest request = SomeTargets(1, 1).front();
  EXPECT_NEAR(
      Scorer(by_position.Trained(), {.input_length = kInputLength, .output_length = kOutputLength})
          .Score({&request, 1})[0][0],
      -Evaluated(by_position, request.ids, request.targets[0]), 1e-4);
}

TEST_F(Batches, RequestsMayHaveDifferentNumbersOfTargets) {
  std::vector<ScoreRequest> requests = SomeTargets(4, 2);
  requests[1].targets.push_back(requests[0].targets[0]);
  requests[2].targets.resize(1);
  Scorer scorer(trial_.Trained(), {.input_length = kInputLength, .output_length = kOutputLength});
  const auto together = scorer.Score(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = scorer.Score({&requests[i], 1}).front();
    ASSERT_EQ(together[i].size(), alone.size());
    for (size_t k = 0; k < alone.size(); ++k) EXPECT_NEAR(together[i][k], alone[k], 1e-5);
  }
  EXPECT_EQ(MostProbable(std::vector<double>{-3, -1, -1}), 1u);
}

// What a strategy says of its output is what scoring says of it.
TEST_F(Batches, OutputsHaveTheScoresOfTheirTokens) {
  const std::vector<DecodeRequest> requests = SomeRequests(6);
  Scorer scorer(trial_.Trained(), {.input_length = kInputLength, .output_length = kOutputLength});
  for (const std::string& decoding : TrialDecodings()) {
    const auto outputs = Decoder(decoding).Decode(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      ScoreRequest given{requests[i].ids, {outputs[i].front().ids}};
      if (given.targets[0].size() < kOutputLength) given.targets[0].push_back(1);
      EXPECT_NEAR(scorer.Score({&given, 1})[0][0], outputs[i].front().log_probability, 1e-4)
          << decoding << ", request " << i;
    }
  }
}

// Ranks that are threads of this process.
class ThreadRank final : public Communicator {
 public:
  struct Meeting {
    explicit Meeting(int ranks) : barrier(ranks), values(ranks) {}
    std::barrier<> barrier;
    std::vector<std::vector<double>> values;
    void* view = nullptr;
  };
  ThreadRank(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.values.size()); }
  int ranks_on_host() const override { return size(); }
  int rank_on_host() const override { return rank_; }
  std::string_view name() const override { return "threads"; }
  std::vector<double> AllGather(std::span<const double> values) override {
    meeting_.values[rank_].assign(values.begin(), values.end());
    meeting_.barrier.arrive_and_wait();
    std::vector<double> all;
    for (const auto& of_rank : meeting_.values)
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  void AllGather(TensorView view, const Shares& shares) override {
    const Shares bytes = shares.Times(SizeOf(view.type.dtype));
    auto* own = static_cast<std::byte*>(view.data);
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) meeting_.view = view.data;
      meeting_.barrier.arrive_and_wait();
      const auto* from = static_cast<const std::byte*>(meeting_.view) + bytes.begin(rank);
      if (rank != rank_) std::copy_n(from, bytes.size(rank), own + bytes.begin(rank));
      meeting_.barrier.arrive_and_wait();
    }
  }
  void AllReduceSum(TensorView) override { Unused(); }
  void ReduceScatter(TensorView, const Shares&) override { Unused(); }
  void Broadcast(TensorView, int) override { Unused(); }
  void AllReduceSum(std::span<double>) override { Unused(); }
  void AllReduceMax(std::span<double>) override { Unused(); }
  void Barrier() override { Unused(); }
  std::vector<std::string> Gather(std::string_view) override { Unused(); }
  [[noreturn]] void Abort(ExitCode) override { std::abort(); }

 private:
  [[noreturn]] static void Unused() { std::abort(); }
  Meeting& meeting_;
  int rank_;
};

// What every rank gets of results that one rank computes alone.
template <typename Result, typename Run>
void ExpectSharedAsAlone(const std::vector<RequestBatch>& batches, size_t count, const Run& run) {
  SelfCommunicator alone;
  const auto expected = ShareBatches<Result>(batches, count, alone, run);
  for (const int size : {2, 3, 8}) {
    ThreadRank::Meeting meeting(size);
    std::vector<std::vector<Result>> results(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadRank self(meeting, rank);
        results[rank] = ShareBatches<Result>(batches, count, self, run);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(results[rank], expected) << rank;
  }
}

TEST(Sharing, EveryRankGetsWhatOneGets) {
  std::vector<RequestSize> sizes;
  for (int64_t i = 0; i < 540; ++i) sizes.push_back({1 + i % 3, 1 + i % 11, i % 5});
  const auto batches = BatchesBySize(sizes, kInputLength, kOutputLength);
  EXPECT_GT(batches.size(), 3u);
  ExpectSharedAsAlone<Hypotheses>(batches, sizes.size(), [&](const RequestBatch& batch) {
    std::vector<Hypotheses> outputs;
    for (const size_t request : batch.requests) {
      Hypotheses& output = outputs.emplace_back(request % 4);
      for (size_t k = 0; k < output.size(); ++k) {
        output[k] = {Ids(request % 6, static_cast<int32_t>(1000 * request)), -1.0 / (1 + k), -0.1};
      }
    }
    return outputs;
  });
  ExpectSharedAsAlone<std::vector<double>>(batches, sizes.size(), [&](const RequestBatch& batch) {
    std::vector<std::vector<double>> scores;
    for (const size_t request : batch.requests) scores.emplace_back(request % 3, 1.0 / request);
    return scores;
  });
}

TEST(BatchesOfRequests, HoldEveryRequestOnceWithinTheirSizes) {
  std::vector<RequestSize> sizes;
  for (int64_t i = 0; i < 200; ++i) sizes.push_back({1 + i % 2 * 3, 1 + i * 13 % 100, i % 9});
  std::vector<int> seen(sizes.size());
  for (const RequestBatch& batch : BatchesBySize(sizes, 100, 9)) {
    EXPECT_GE(batch.inputs, static_cast<int64_t>(batch.requests.size()));
    EXPECT_LE(batch.inputs * batch.largest.rows, 192);
    EXPECT_LE(batch.largest.input, 100);
    for (const size_t request : batch.requests) {
      ++seen[request];
      EXPECT_EQ(sizes[request].rows, batch.largest.rows);
      EXPECT_LE(sizes[request].input, batch.largest.input);
      EXPECT_LE(sizes[request].output, batch.largest.output);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(sizes.size(), 1));
}

// A few long inputs do not make many short ones as long, but a few that are somewhat shorter are no
// reason for another batch.
TEST(BatchesOfRequests, AreDividedWherePaddingCostsMore) {
  const auto counts = [](int64_t few, int64_t long_input, int64_t many, int64_t short_input) {
    std::vector<RequestSize> sizes(few, RequestSize{1, long_input, 0});
    sizes.resize(few + many, RequestSize{1, short_input, 0});
    std::vector<size_t> counts;
    for (const RequestBatch& batch : BatchesBySize(sizes, 128, 10)) {
      counts.push_back(batch.requests.size());
    }
    return counts;
  };
  EXPECT_EQ(counts(6, 64, 80, 16), (std::vector<size_t>{80, 6}));
  EXPECT_EQ(counts(6, 24, 80, 16), (std::vector<size_t>{86}));
  EXPECT_EQ(counts(200, 16, 200, 16), (std::vector<size_t>{192, 192, 16}));
}

TEST(BatchesOfRequests, AreSmallerWhereOutputsAreLong) {
  const std::vector<RequestSize> sizes(200, RequestSize{1, 10, 5});
  const auto rows = [&](int64_t longest) { return BatchesBySize(sizes, 100, longest)[0].inputs; };
  EXPECT_EQ(rows(16), 192);
  EXPECT_EQ(rows(512), 32);
  EXPECT_EQ(rows(1 << 20), 1);
}

}  // namespace
}  // namespace syntra
