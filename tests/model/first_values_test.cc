// SPDX-License-Identifier: Apache-2.0
// How parameters start. The other tests set them, or only compare runs that start alike.
#include <gtest/gtest.h>

#include <cmath>

#include "model/model_trial.h"

namespace syntra {
namespace {

// Of the tiny models: D, F, the H heads of K columns, the buckets of the relative bias.
constexpr double kWidth = 16, kHidden = 24, kHeads = 2, kSize = 8, kBuckets = 8;
// Of the cases below: N, and the taps of a filter.
constexpr double kLength = 16, kTaps = 7;

struct FirstValues {
  ModelConfig model;
  const char* parameter;
  Initializer wanted;
};

void ExpectAll(std::initializer_list<FirstValues> all) {
  for (const auto& [config, name, wanted] : all) {
    const ParameterStore parameters = DeclareParameters(Model(config));
    const Parameter* found = parameters.Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->initializer.kind, wanted.kind) << name;
    EXPECT_DOUBLE_EQ(found->initializer.scale, wanted.scale) << name;
  }
}

double InverseRoot(double x) { return 1 / std::sqrt(x); }

// Raffel et al. 2020 in Mesh TensorFlow. Queries have the factor of the scores, K^-1/2.
TEST(FirstValues, OfT5) {
  const ModelConfig t5 = TinyModel();
  const auto with = [](const char* fields) { return TinyModel("", fields); };
  const Initializer of_width = Initializer::Normal(InverseRoot(kWidth)),
                    of_query = Initializer::Normal(InverseRoot(kWidth * kSize)),
                    of_output = Initializer::Normal(InverseRoot(kHeads * kSize));
  ExpectAll({
      {t5, "embedding", Initializer::Normal(1)},
      {with("tied_embeddings: false"), "output_embedding",
       Initializer::TruncatedNormal(InverseRoot(kWidth))},
      {t5, "encoder/relative_bias", Initializer::Uniform(std::sqrt(6 / (kHeads + kBuckets)))},
      {t5, "encoder/norm", Initializer::Constant(1)},
      {t5, "encoder/layer_00/mixer/query", of_query},
      {t5, "encoder/layer_00/mixer/key", of_width},
      {t5, "encoder/layer_00/mixer/value", of_width},
      {t5, "encoder/layer_00/mixer/output", of_output},
      {t5, "decoder/layer_01/cross_attention/query", of_query},
      {t5, "decoder/layer_01/cross_attention/key", of_width},
      {t5, "decoder/layer_01/cross_attention/value", of_width},
      {t5, "decoder/layer_01/cross_attention/output", of_output},
      {t5, "encoder/layer_00/feed_forward/input",
       Initializer::TruncatedNormal(InverseRoot(kWidth))},
      {t5, "encoder/layer_00/feed_forward/output",
       Initializer::TruncatedNormal(InverseRoot(kHidden))},
  });
}

TEST(FirstValues, OfOtherBodies) {
  const ModelConfig normal =
      ListedModel("feed_forward { initialization: NORMAL activation: GATED_GELU bias: true }");
  const ModelConfig halting = ListedModel(
      "positions { learned {} } norm: LAYER_NORM encoder { layers { repeat: 3 "
      "recurrence { step_signal: LEARNED halting { bias: 0.5 } } } }");
  ExpectAll({
      {TinyModel("", "scaled_embeddings: true"), "embedding",
       Initializer::Normal(InverseRoot(kWidth))},
      {TinyEncoder(""), "classifier", Initializer::TruncatedNormal(InverseRoot(kWidth))},
      {normal, "encoder/layer_00/feed_forward/gate", Initializer::Normal(InverseRoot(kWidth))},
      {normal, "encoder/layer_00/feed_forward/output", Initializer::Normal(InverseRoot(kHidden))},
      {normal, "encoder/layer_00/feed_forward/output_bias", Initializer::Constant(0)},
      {halting, "encoder/norm_bias", Initializer::Constant(0)},
      {halting, "position_embedding", Initializer::Normal(1)},
      {halting, "encoder/layer_00/step_embedding", Initializer::Normal(1)},
      {halting, "encoder/layer_00/halting/weight", Initializer::Normal(InverseRoot(kWidth))},
      {halting, "encoder/layer_00/halting/bias", Initializer::Constant(0.5)},
  });
}

ModelConfig WithTerms(const std::string& terms) {
  return TinyModel("attention { heads: 2 head_size: 8 " + terms + " }");
}

// Tay et al. 2021 in Mesh TensorFlow, whose rule for a table of three axes multiplies the fans of
// the last two by the first. It stores a random table as [N, H, N], factors as [k, H, N].
TEST(FirstValues, OfSynthesizers) {
  const auto random = [](const std::string& more) {
    return WithTerms("term { random { max_length: 16 " + more + " } }");
  };
  const auto factors = WithTerms("term { factorized_random { max_length: 16 rank: 4 } }");
  const auto dense = WithTerms("term { dense { max_length: 16 bias: true } }");
  const auto outer = WithTerms("term { factorized_dense { a: 4 b: 4 hidden: 5 } }");
  const auto gated = WithTerms(
      "gate: SIGMOID initial_alpha: 5 term { random { max_length: 16 } } term { dot_product {} }");
  const auto bias =
      WithTerms("relative_bias: false term { relative_bias { buckets: 8 max_distance: 16 } }");
  const auto glorot = [](double fans) { return Initializer::Uniform(std::sqrt(6 / fans)); };
  const Initializer of_factors = glorot(4 * (kHeads + kLength));
  ExpectAll({
      {random(""), "encoder/layer_00/mixer/random/table", glorot(kLength * (kHeads + kLength))},
      {random("per_head: false"), "encoder/layer_00/mixer/random/table",
       glorot(kLength * (1 + kLength))},
      {random("initialization: GLOROT_2D"), "encoder/layer_00/mixer/random/table",
       glorot(2 * kLength)},
      {random("initialization: NORMAL deviation: 3"), "encoder/layer_00/mixer/random/table",
       Initializer::Normal(3)},
      {factors, "encoder/layer_00/mixer/factorized_random/query", of_factors},
      {factors, "encoder/layer_00/mixer/factorized_random/key", of_factors},
      {dense, "encoder/layer_00/mixer/dense/hidden",
       Initializer::Normal(InverseRoot(kWidth * kSize))},
      {dense, "encoder/layer_00/mixer/dense/hidden_bias", Initializer::Constant(0)},
      {dense, "encoder/layer_00/mixer/dense/positions",
       Initializer::TruncatedNormal(InverseRoot(kSize))},
      {outer, "encoder/layer_00/mixer/factorized_dense/hidden",
       Initializer::Normal(InverseRoot(kWidth * 5))},
      {outer, "encoder/layer_00/mixer/factorized_dense/a",
       Initializer::TruncatedNormal(InverseRoot(5))},
      {outer, "encoder/layer_00/mixer/factorized_dense/b",
       Initializer::TruncatedNormal(InverseRoot(5))},
      {gated, "encoder/layer_00/mixer/gate", Initializer::Constant(5)},
      {bias, "encoder/layer_00/mixer/relative_bias/table", glorot(kHeads + kBuckets)},
  });
}

// Wu et al. 2019 in fairseq: xavier_uniform_ of linear layers and of the filters of one channel.
TEST(FirstValues, OfFairseqsConvolutions) {
  for (const std::string kind : {"light_conv", "dynamic_conv"}) {
    const ModelConfig model = TinyModel(kind + " { heads: 2 }");
    const double filter_fans = kind == "light_conv" ? kTaps + 2 * kTaps : kWidth + 2 * kTaps;
    ExpectAll({
        {model, "encoder/layer_00/mixer/input", Initializer::Uniform(std::sqrt(6 / (3 * kWidth)))},
        {model, "encoder/layer_00/mixer/filters", Initializer::Uniform(std::sqrt(6 / filter_fans))},
        {model, "encoder/layer_00/mixer/output", Initializer::Uniform(std::sqrt(6 / (2 * kWidth)))},
    });
  }
}

TEST(FirstValues, OfMeshsConvolutions) {
  const auto light = TinyModel("light_conv { form: MESH }"),
             dynamic = TinyModel("dynamic_conv { form: MESH }");
  const Initializer of_width = Initializer::Normal(InverseRoot(kWidth));
  ExpectAll({
      {light, "encoder/layer_00/mixer/input", of_width},
      {light, "encoder/layer_00/mixer/filters", Initializer::TruncatedNormal(InverseRoot(kTaps))},
      {light, "encoder/layer_00/mixer/filter_bias", Initializer::Constant(0)},
      {light, "encoder/layer_00/mixer/pointwise", of_width},
      {light, "encoder/layer_00/mixer/output", of_width},
      {dynamic, "encoder/layer_00/mixer/filters", Initializer::Normal(InverseRoot(kWidth * kTaps))},
  });
}

// As in the code of their authors or, of linformer, in fairseq's, of gated_mlp in lucidrains'.
TEST(FirstValues, OfOtherMixers) {
  const auto gated = TinyModel("gated_mlp { width: 24 max_length: 16 }");
  const auto mlp = TinyModel("mlp { width: 24 max_length: 16 }");
  const auto retention = TinyModel("retention { heads: 2 head_size: 8 value_size: 8 }");
  const auto hyena = TinyModel("hyena { max_length: 16 filter_width: 5 filter_frequency: 3 }");
  ExpectAll({
      {TinyModel("linformer { heads: 2 head_size: 8 projected_length: 4 max_length: 16 }"),
       "encoder/layer_00/mixer/project_key", Initializer::Uniform(std::sqrt(3 / (4 + kLength)))},
      {gated, "encoder/layer_00/mixer/map", Initializer::Uniform(1e-3 / kLength)},
      {gated, "encoder/layer_00/mixer/map_bias", Initializer::Constant(1)},
      {mlp, "encoder/layer_00/mixer/input", Initializer::TruncatedNormal(InverseRoot(kLength))},
      {mlp, "encoder/layer_00/mixer/output", Initializer::TruncatedNormal(InverseRoot(kHidden))},
      {TinyModel("sinkhorn { heads: 2 head_size: 8 block_size: 4 max_length: 16 }"),
       "encoder/layer_00/mixer/sorting", Initializer::Normal(InverseRoot(kWidth * 4))},
      {TinyModel("reformer { heads: 2 head_size: 8 }"), "encoder/layer_00/mixer/rotation",
       Initializer::Normal(1)},
      {TinyModel("performer { heads: 2 head_size: 8 }"), "encoder/layer_00/mixer/features",
       Initializer::Orthogonal()},
      {TinyModel("attention_free { width: 16 max_length: 16 }"), "encoder/layer_00/mixer/biases",
       Initializer::Normal(0.01)},
      {retention, "encoder/layer_00/mixer/query", Initializer::Normal(InverseRoot(kWidth))},
      {retention, "encoder/layer_00/mixer/key", Initializer::Normal(InverseRoot(kWidth * kSize))},
      {hyena, "encoder/layer_00/mixer/short_filters", Initializer::Uniform(InverseRoot(3))},
      {hyena, "encoder/layer_00/mixer/skip_0", Initializer::Normal(1)},
      {hyena, "encoder/layer_00/mixer/filters_back/frequencies", Initializer::Constant(3)},
      {hyena, "encoder/layer_00/mixer/filters_back/last", Initializer::Uniform(InverseRoot(5))},
  });
}

}  // namespace
}  // namespace syntra
