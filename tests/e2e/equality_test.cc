// SPDX-License-Identifier: Apache-2.0
// Training gives the same results however it is split: ranks, micro-batches, threads,
// recomputation.
#include "checkpoint/read.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using Equality = TinyRun;

// A smooth activation: where a ReLU's input is zero but for rounding, its gradient jumps
// (tests/model/relu_kink_test.cc traces such a step; Exact below has ReLU). AdamW
// divides by the size of each gradient, so rounding in one near zero moves its parameter by the
// whole rate; Adafactor's steps follow whole rows and columns.
const Arguments kSmooth{"model.feed_forward.activation=GATED_GELU"};
const Arguments kAdafactor{"model.feed_forward.activation=GATED_GELU",
                           "optimizer.kind=ADAFACTOR",
                           "optimizer.min_factored_size=16",
                           "optimizer.schedule.rate=0.02",
                           "checkpoint.every=1",
                           "checkpoint.keep=30",
                           "evaluation.every=5"};

const Arguments kHalting{
    "model.positions={ sinusoidal {} }",
    "model.encoder={ layers { repeat: 3 recurrence { halting { bias: 0 loss_weight: 0.1 } } } }",
    "model.decoder={ layers { repeat: 3 recurrence { step_signal: LEARNED halting {} } } }"};

Arguments With(Arguments settings, const Arguments& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST_F(Equality, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("one", kAdafactor);
  Train("two", kAdafactor, {.ranks = 2});
  ExpectSameCurve("one", "two", 10, 1e-6);
  ExpectSameParameters("one", "two", 1, 1e-6);
  Train("four", kAdafactor, {.ranks = 4});
  ExpectSameCurve("one", "four", 10, 1e-6);
  ExpectSameParameters("one", "four", 1, 1e-6);
}

TEST_F(Equality, TwoRanksAreOneForAdamW) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("one", kSmooth);
  Train("two", kSmooth, {.ranks = 2});
  ExpectSameCurve("one", "two", 3, 1e-6);
  ExpectSameCurve("one", "two", 20, 1e-5);
}

TEST_F(Equality, MicroBatchesAreTheBatch) {
  Train("whole", kAdafactor);
  for (const char* rows : {"4", "1"}) {
    Train(rows, With(kAdafactor, {std::string("train.micro_batch_size=") + rows}));
    ExpectSameCurve("whole", rows, 10, 1e-6);
    ExpectSameParameters("whole", rows, 1, 1e-6);
  }
}

TEST_F(Equality, LossPerTokenToo) {
  const Arguments settings = With(kAdafactor, {"train.loss_denominator=TARGET_TOKENS"});
  Train("whole", settings);
  Train("cut", With(settings, {"train.micro_batch_size=2"}));
  ExpectSameCurve("whole", "cut", 10, 1e-6);
}

// A ponder loss is a mean over the positions of the whole batch.
TEST_F(Equality, PonderLossToo) {
  const Arguments settings = With(kAdafactor, kHalting);
  Train("whole", settings);
  Train("cut", With(settings, {"train.micro_batch_size=2"}));
  EXPECT_GT(Metrics("whole").at(1).at("ponder_loss"), 0);
  ExpectSameCurve("whole", "cut", 10, 1e-6);
}

// Performer's are the same until a step whose turn it is, and then others.
TEST_F(Equality, RandomFeaturesLastUntilTheyAreRedrawn) {
  Train("run", {"model.mixer={ performer { heads: 2 head_size: 16 features: 24 redraw_every: 3 } }",
                "model.positions={ sinusoidal {} }", "data.pack=false", "train.steps=7",
                "checkpoint.every=1", "checkpoint.keep=10"});
  const auto features = [&](int64_t step) {
    Checkpoint checkpoint(CheckpointPath("run", step));
    const std::string name = "parameters/encoder/layer_00/mixer/features";
    const TensorType type{DType::kF32, {16, 24}};
    std::vector<float> values(type.shape.size());
    checkpoint.Read(name, {reinterpret_cast<std::byte*>(values.data()), type});
    return values;
  };
  for (int64_t step = 1; step <= 7; ++step) {
    const bool redrawn = step == 4 || step == 7;
    EXPECT_EQ(features(step) != features(step - 1), redrawn) << step;
  }
  EXPECT_NE(features(7), features(1));
}

TEST_F(Equality, RecomputationChangesNoBit) {
  Train("kept");
  for (const std::string choice : {"FEED_FORWARD", "LAYERS"}) {
    Train(choice, {"train.recompute=" + choice});
    EXPECT_EQ(Trace(Directory("kept"), 20), Trace(Directory(choice), 20)) << choice;
  }
}

TEST_F(Equality, ThreadsChangeNoBit) {
  // Wide enough that the work is divided.
  const Arguments settings{"model.width=128", "model.feed_forward.width=512", "train.batch_size=16",
                           "train.steps=5",   "evaluation.every=5",           "checkpoint.every=5"};
  Train("one", settings);
  for (const char* threads : {"2", "3"}) {
    Train(threads, With(settings, {std::string("train.threads=") + threads}));
    EXPECT_EQ(Trace(Directory("one"), 5), Trace(Directory(threads), 5)) << threads << " threads";
  }
}

// Nor does an environment that makes teams smaller than the library expects them to be.
TEST_F(Equality, LimitsOnThreadsChangeNoBit) {
  const Arguments settings{"train.steps=5", "train.threads=2"};
  Train("free", settings);
  for (const char* limit : {"OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_THREAD_LIMIT=1"}) {
    Train(limit, settings, {.environment = {limit}});
    EXPECT_EQ(Trace(Directory("free"), 5), Trace(Directory(limit), 5)) << limit;
  }
}

TEST_F(Equality, ARunAgainIsTheSame) {
  const Arguments settings{"train.steps=8"};
  Train("a", settings);
  Train("b", settings);
  EXPECT_EQ(Trace(Directory("a"), 8), Trace(Directory("b"), 8));
  if (MpirunPath().empty()) return;
  Train("c", settings, {.ranks = 2});
  Train("d", settings, {.ranks = 2});
  EXPECT_EQ(Trace(Directory("c"), 8), Trace(Directory("d"), 8));
}

struct ExactCase {
  const char* name;
  Arguments settings;
};

void PrintTo(const ExactCase& each, std::ostream* out) { *out << each.name; }

// reduction EXACT: metrics, parameters and optimizer state, which holds the gradients, are the same
// to the bit at any number of ranks, threads and all.
class Exact : public TinyRun, public testing::WithParamInterface<ExactCase> {
 protected:
  static Arguments Settings(const std::string& reduction, const Arguments& more) {
    return With({"train.reduction=" + reduction, "train.batch_size=16", "train.micro_batch_size=2",
                 "train.steps=10", "checkpoint.every=10"},
                more);
  }
};

TEST_P(Exact, OneTwoAndFourRanksAreTheSame) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Arguments settings = Settings("EXACT", GetParam().settings);
  Train("one", With(settings, {"train.threads=2"}));
  Train("two", settings, {.ranks = 2});
  Train("four", settings, {.ranks = 4});
  EXPECT_EQ(Trace(Directory("one"), 10), Trace(Directory("two"), 10));
  EXPECT_EQ(Trace(Directory("one"), 10), Trace(Directory("four"), 10));
}

Arguments Mixer(const std::string& terms) {
  return {"model.mixer={ attention { heads: 2 head_size: 16 dropout: 0.1 " + terms + " } }"};
}

const ExactCase kExactCases[] = {
    {"RandomAndDotProduct", {}},
    {"Transformer", With(Mixer("term { dot_product {} }"),
                         {"model.feed_forward.activation=GATED_GELU", "train.precision=BF16"})},
    {"Dense", With(Mixer("term { dense { max_length: 32 } }"),
                   {"optimizer.kind=ADAFACTOR", "optimizer.min_factored_size=16"})},
    {"FactorizedDense", With(Mixer("term { factorized_dense { a: 8 b: 4 } }"),
                             {"model.feed_forward.activation=GATED_GELU",
                              "optimizer.kind=ADAFACTOR", "optimizer.min_factored_size=16"})},
    {"FactorizedRandomAndDense",
     With(Mixer("gate: SOFTMAX term { factorized_random { max_length: 32 } } "
                "term { dense { max_length: 32 } }"),
          {"train.loss_denominator=TARGET_TOKENS", "train.recompute=LAYERS"})},
    {"ConvolutionsAndPositions",
     {"model.mixer={ light_conv { kernel_size: 5 heads: 4 } }",
      "model.decoder_mixer={ dynamic_conv { kernel_size: 5 heads: 4 } }", "model.norm=LAYER_NORM",
      "model.positions={ learned { max_length: 32 } }", "model.feed_forward.bias=true"}},
    {"WithoutSoftmax",
     {"model.encoder={ layers { mixer { performer { heads: 2 head_size: 16 features: 24 "
      "redraw_every: 3 } } } "
      "layers { mixer { hyena { max_length: 32 filter_width: 8 } } } }",
      "model.decoder={ layers { mixer { retention { heads: 2 head_size: 8 chunk_length: 5 } } } "
      "layers { mixer { attention_free { width: 32 max_length: 32 rank: 4 } } } }",
      "data.pack=false"}},
    {"MapsOverPositions",
     {"model.encoder={ layers { mixer { linformer { heads: 2 head_size: 16 projected_length: 8 "
      "max_length: 32 } } } layers { mixer { mlp { width: 16 max_length: 32 } } } }",
      "model.decoder_mixer={ gated_mlp { width: 64 max_length: 32 attention_size: 8 } }",
      "data.pack=false"}},
    {"SparseAttention",
     {"model.encoder={ layers { mixer { big_bird { heads: 2 head_size: 16 block_size: 4 "
      "max_length: 32 } } } layers { mixer { reformer { heads: 2 head_size: 16 chunk_length: 8 "
      "buckets: 4 } } } layers { mixer { sinkhorn { heads: 2 head_size: 16 block_size: 8 "
      "max_length: 32 } } } }",
      "model.decoder_mixer={ local_attention { heads: 2 head_size: 16 radius: 4 } }",
      "model.positions={ sinusoidal {} }", "data.pack=false"}},
    {"Halting", kHalting},
    {"DrawsInTraining",
     {"model.mixer={ sinkhorn { heads: 2 head_size: 16 block_size: 8 max_length: 32 gumbel_noise: "
      "true } }",
      "model.decoder_mixer={ dynamic_conv { kernel_size: 5 heads: 4 weight_dropout: 0.2 } }",
      "model.positions={ sinusoidal {} }", "data.pack=false"}},
};
INSTANTIATE_TEST_SUITE_P(All, Exact, testing::ValuesIn(kExactCases),
                         [](const auto& info) { return info.param.name; });

class ExactControl : public Exact {};

// Another order of the same sums shows in the comparison.
TEST_P(ExactControl, AnotherTreeShows) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Arguments settings = Settings("FAST", GetParam().settings);
  Train("one", settings);
  Train("two", settings, {.ranks = 2});
  EXPECT_NE(Trace(Directory("one"), 10), Trace(Directory("two"), 10));
  Train("exact", Settings("EXACT", GetParam().settings));
  EXPECT_NE(Trace(Directory("one"), 10), Trace(Directory("exact"), 10));
}
INSTANTIATE_TEST_SUITE_P(All, ExactControl, testing::ValuesIn(std::span(kExactCases).first(2)),
                         [](const auto& info) { return info.param.name; });

// train.sharding: what ranks share is what one has alone, to the bit of every file of a checkpoint.
class Sharded : public TinyRun, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    TinyRun::SetUp();
  }
  static Arguments Settings(const Arguments& more) {
    return With({"optimizer.kind=" + std::string(GetParam()), "optimizer.min_factored_size=16",
                 "optimizer.clip_norm=0.1", "train.batch_size=12", "train.micro_batch_size=1",
                 "train.steps=6", "checkpoint.every=2", "checkpoint.keep=10", "evaluation.every=3"},
                more);
  }
  bool SaysThatRanksShare(const std::string& name) const {
    const std::string log = ReadWholeFile(Directory(name) / "log/rank-0000.log");
    return log.find("the ranks share the optimizer's state") != std::string::npos;
  }
};

TEST_P(Sharded, AnyNumberOfRanksIsOneWithAnExactOrder) {
  const Arguments exact = Settings({"train.reduction=EXACT"});
  const Arguments shared = With(exact, {"train.sharding=OPTIMIZER_STATE"});
  // Twelve micro-batches are one tree for 3 ranks, of four each, and for one rank, but not for 2.
  const Arguments even = With(shared, {"train.batch_size=8"});
  Train("whole", exact);
  Train("1", shared);
  Train("3", shared, {.ranks = 3});
  EXPECT_FALSE(SaysThatRanksShare("1"));
  EXPECT_TRUE(SaysThatRanksShare("3"));
  EXPECT_EQ(Trace(Directory("whole"), 6), Trace(Directory("1"), 6));
  EXPECT_EQ(Trace(Directory("whole"), 6), Trace(Directory("3"), 6));
  Train("whole of 8", With(exact, {"train.batch_size=8"}));
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    Train(name, even, {.ranks = ranks});
    EXPECT_EQ(Trace(Directory("whole of 8"), 6), Trace(Directory(name), 6)) << name << " ranks";
  }
}

TEST_P(Sharded, ChangesNothingInAnyOrder) {
  for (const int ranks : {2, 3}) {
    Train("each", Settings({}), {.ranks = ranks});
    Train("shared", Settings({"train.sharding=OPTIMIZER_STATE"}), {.ranks = ranks});
    EXPECT_EQ(Trace(Directory("each"), 6), Trace(Directory("shared"), 6)) << ranks << " ranks";
    RemoveAll(Directory("each"));
    RemoveAll(Directory("shared"));
  }
}

// Each part of the run with other ranks, which share the state or do not.
TEST_P(Sharded, ContinuesWithOtherRanksAndWithout) {
  const Arguments exact = Settings({"train.reduction=EXACT", "train.batch_size=8"});
  const Arguments shared = With(exact, {"train.sharding=OPTIMIZER_STATE"});
  Train("whole", exact);
  const auto part = [&](const Arguments& settings, int ranks, int64_t last) {
    Train("parts", settings, {.ranks = ranks});
    for (int64_t later = last + 1; later <= 6; ++later) RemoveAll(CheckpointPath("parts", later));
    RemoveAll(Directory("parts") / "STATUS");
  };
  part(shared, 4, 2);
  part(shared, 2, 4);
  part(exact, 1, 6);
  EXPECT_EQ(Trace(Directory("whole"), 6), Trace(Directory("parts"), 6));
  RemoveAll(Directory("parts"));
  part(exact, 2, 2);
  part(shared, 4, 6);
  EXPECT_EQ(Trace(Directory("whole"), 6), Trace(Directory("parts"), 6));
}

INSTANTIATE_TEST_SUITE_P(All, Sharded, testing::Values("ADAMW", "ADAFACTOR"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace syntra
