// SPDX-License-Identifier: Apache-2.0
// Stacks whose layers are a list: hybrids, shared parameters, and the short form as a list.
#include "model/stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "configs/schema/kind_of.h"
#include "kernels/tested.h"
#include "model/model_trial.h"
#include "nn/sinusoids.h"
#include "program/finite_differences.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

constexpr int64_t kVocabulary = 32;

std::string Mixer(const std::string& name) { return "mixer { " + TrialMixers().at(name) + " } "; }

std::string Hybrid(const std::string& side) {
  return side + " { layers { repeat: 2 " + Mixer("random") + "} layers { " +
         Mixer("dense_and_dot") + "feed_forward { width: 20 } } layers {} } ";
}

std::vector<std::string> NamesOf(const ParameterStore& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters.all()) names.push_back(parameter.name);
  return names;
}

int64_t CountOf(const ModelConfig& config) {
  return DeclareParameters(Model(config)).element_count();
}

// Tests of whole models, of decoding and of conversion run all of them.
TEST(TrialMixers, AreOfEveryKind) {
  std::set<std::string> kinds;
  for (const auto& [name, mixer] : TrialMixers()) kinds.insert(KindOf(TinyModel(mixer).mixer()));
  EXPECT_EQ(kinds, KindNames<MixerConfig>());
}

TEST(Stack, AListOfEqualLayersIsTheirNumber) {
  const ModelConfig listed =
      ListedModel("encoder { layers {} layers {} } decoder { layers { repeat: 2 } }");
  EXPECT_EQ(NamesOf(DeclareParameters(Model(listed))),
            NamesOf(DeclareParameters(Model(TinyModel()))));
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  ModelTrial list({.config = listed}, batch, FastBackend()), number({}, batch, FastBackend());
  EXPECT_EQ(list.Run(), number.Run());
  EXPECT_EQ(list.Gradients(), number.Gradients());
  EXPECT_EQ(ShortForm(listed).encoder_layers(), 2);
  EXPECT_FALSE(ShortForm(listed).has_encoder());
}

// The short form could not say what is special about these.
TEST(Stack, AListOfOtherLayersStaysAList) {
  const std::string two = "encoder { layers { repeat: 2 ";
  for (const std::string& fields :
       {Hybrid("encoder"), two + "weights: 'a' } }", two + "recurrence {} } }",
        two + "feed_forward { width: 20 } } }"}) {
    EXPECT_TRUE(ShortForm(ListedModel(fields)).has_encoder()) << fields;
  }
}

TEST(Stack, AHybridHasTheParametersOfItsLayers) {
  const ModelConfig config = ListedModel(Hybrid("encoder"));
  const ParameterStore parameters = DeclareParameters(Model(config));
  for (const char* name : {"layer_00/mixer/random/table", "layer_01/mixer/random/table",
                           "layer_02/mixer/dense/positions", "layer_03/mixer/key"}) {
    EXPECT_NE(parameters.Find(std::string("encoder/") + name), nullptr) << name;
  }
  EXPECT_EQ(parameters.Find("encoder/layer_00/mixer/key"), nullptr);
  EXPECT_EQ(parameters.Get("encoder/layer_02/feed_forward/input").shape, (Shape{16, 20}));
  EXPECT_EQ(parameters.Get("encoder/layer_03/feed_forward/input").shape, (Shape{16, 24}));
}

TEST(Stack, AHybridsGradientsAgreeWithCentralDifferences) {
  ModelSetting setting{.config = ListedModel(Hybrid("encoder") + Hybrid("decoder"))};
  // Hidden layers without kinks, which central differences would step over.
  for (StackConfig* stack : {setting.config.mutable_encoder(), setting.config.mutable_decoder()}) {
    stack->mutable_layers(1)->mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
  }
  setting.config.mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
  ModelTrial trial(setting, RandomBatch({1, 5, 4}, kVocabulary), ReferenceBackend());
  ExpectGradients(trial.executable(), trial.memory(), trial.parameters());
}

TEST(Stack, AHybridLearnsABatch) {
  ModelTrial trial(
      {.config = ListedModel(Hybrid("encoder") + Hybrid("decoder")), .inverse_denominator = 0.1},
      RandomBatch({2, 7, 5}, kVocabulary), FastBackend());
  const double first = trial.Run();
  double last = first;
  for (int step = 0; step < 15; ++step) {
    for (const auto& [name, gradient] : trial.Gradients()) {
      const Parameter& parameter = trial.parameters().Get(name);
      const std::vector<double> values = trial.memory().ParameterValues(parameter);
      std::vector<float> moved(values.size());
      for (size_t i = 0; i < moved.size(); ++i) {
        moved[i] = static_cast<float>(values[i] - 0.1 * gradient[i]);
      }
      trial.memory().SetParameter(parameter, moved);
    }
    last = trial.Run();
  }
  EXPECT_LT(last, 0.5 * first);
}

// Width 4: the second wavelength is 100 times the first, by Tensor2Tensor's rule 10000 times.
TEST(Stack, SinusoidsAreThoseOfTheirLayout) {
  const float sin = std::sin(1.0F), cos = std::cos(1.0F);
  EXPECT_THAT(SinusoidTable(SinusoidalPositions::INTERLEAVED, 2, 4),
              testing::Pointwise(testing::FloatEq(),
                                 {0.0F, 1.0F, 0.0F, 1.0F, sin, cos, 0.00999983333F, 0.99995F}));
  EXPECT_THAT(SinusoidTable(SinusoidalPositions::HALVES, 2, 4),
              testing::Pointwise(testing::FloatEq(),
                                 {0.0F, 0.0F, 1.0F, 1.0F, sin, 1e-4F, cos, 0.999999995F}));
}

TEST(Stack, SharedLayersCountOnceAndAddTheirGradients) {
  const std::string encoder = "decoder { layers {} } encoder ";
  const ModelConfig once = ListedModel(encoder + "{ layers {} }");
  const ModelConfig thrice = ListedModel(
      encoder + "{ layers { repeat: 2 weights: 'block' } layers { weights: 'block' } }");
  EXPECT_EQ(CountOf(thrice), CountOf(once));
  EXPECT_GT(CountOf(ListedModel(encoder + "{ layers { repeat: 3 } }")), CountOf(once));

  // Where three layers of their own have the same values, the shared gradient is their sum.
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  ModelTrial shared({.config = thrice}, batch, ReferenceBackend());
  ModelTrial own({.config = ListedModel(encoder + "{ layers { repeat: 3 } }")}, batch,
                 ReferenceBackend());
  const std::string first = "encoder/layer_00";
  for (const Parameter& parameter : own.parameters().all()) {
    std::string name = parameter.name;
    if (name.starts_with("encoder/layer_")) name.replace(0, first.size(), first);
    const std::vector<double> values =
        shared.memory().ParameterValues(shared.parameters().Get(name));
    own.memory().SetParameter(parameter, std::vector<float>(values.begin(), values.end()));
  }
  EXPECT_DOUBLE_EQ(shared.Run(), own.Run());
  const auto together = shared.Gradients(), apart = own.Gradients();
  for (const auto& [name, gradient] : together) {
    if (!name.starts_with(first)) continue;
    std::vector<double> sum(gradient.size());
    for (const char* layer : {"encoder/layer_00", "encoder/layer_01", "encoder/layer_02"}) {
      const auto& part = apart.at(layer + name.substr(first.size()));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    EXPECT_LT(LargestError(gradient, sum), 1e-9) << name;
  }
}

// How many values of training are dropped, each by numbers of its own.
size_t DroppedValues(const std::string& fields) {
  const Model model(ListedModel(fields, TinyModel("", "dropout: 0.3")));
  const Program program = TrainingProgram(model, DeclareParameters(model), DType::kF32, {2, 7, 5},
                                          {}, TrainConfig::NOTHING);
  std::multiset<int64_t> sites;
  for (size_t i = 0; i < program.backward_begin; ++i) {
    const Instruction& each = program.instructions[i];
    const std::string& op = each.op->name;
    if (op != "add_norm" && op.find("dropout") == std::string::npos) continue;
    if (each.call.attributes.Number("rate") > 0) sites.insert(each.call.attributes.Int("site"));
  }
  EXPECT_EQ(std::set(sites.begin(), sites.end()).size(), sites.size());
  return sites.size();
}

// Of each stack the embedding and the output, of each layer its sublayers' and the hidden values.
TEST(Stack, DropsTheSameValuesWhateverItsNormAndActivation) {
  constexpr size_t kEncoder = 1 + 2 * 3 + 1, kDecoder = 1 + 2 * 4 + 1;
  const std::string steps = "{ layers { repeat: 2 recurrence {} } } ";
  for (const std::string fields :
       {"", "norm: LAYER_NORM", "feed_forward { activation: GELU }",
        "feed_forward { activation: GATED_GELU }", "feed_forward { bias: true }"}) {
    EXPECT_EQ(DroppedValues(fields), kEncoder + kDecoder) << fields;
  }
  EXPECT_EQ(DroppedValues("positions { sinusoidal {} } encoder " + steps + "decoder " + steps),
            kEncoder + kDecoder);
  // A norm behind the last sublayer gives the output.
  EXPECT_EQ(DroppedValues("norm_placement: AFTER"), kEncoder + kDecoder - 2);
  EXPECT_EQ(DroppedValues("norm_placement: AFTER norm: LAYER_NORM"), kEncoder + kDecoder - 2);
}

ModelConfig Recurrent(int steps, const std::string& recurrence) {
  const std::string layers =
      fmt::format(" {{ layers {{ repeat: {} recurrence {{ {} }} }} }} ", steps, recurrence);
  return ListedModel("positions { sinusoidal {} } encoder" + layers + "decoder" + layers);
}

TEST(Recurrence, HasTheParametersOfOneStep) {
  const int64_t once = CountOf(ListedModel("encoder { layers {} } decoder { layers {} }"));
  EXPECT_EQ(CountOf(Recurrent(4, "")), once);
  EXPECT_EQ(CountOf(Recurrent(4, "step_signal: LEARNED")), once + 2 * 4 * 16);
  EXPECT_EQ(CountOf(Recurrent(4, "halting {}")), once + 2 * (16 + 1));
}

// Without signals it is layers that share their weights.
TEST(Recurrence, WithoutSignalsIsSharedWeights) {
  const ModelConfig shared = ListedModel(
      "positions { sinusoidal {} } encoder { layers { repeat: 3 weights: 'a' } } "
      "decoder { layers { repeat: 3 weights: 'a' } }");
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  ModelTrial expected({.config = shared}, batch, FastBackend());
  ModelTrial found({.config = Recurrent(3, "step_signal: NONE positions: false")}, batch,
                   FastBackend());
  EXPECT_EQ(found.Run(), expected.Run());
  EXPECT_EQ(found.Gradients(), expected.Gradients());
}

// Sure of it at once, every position has taken one step, and what counts there is all.
TEST(Recurrence, WhoHaltsAtOnceTakesOneStep) {
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  ModelTrial once({.config = Recurrent(1, "")}, batch, ReferenceBackend());
  ModelTrial halting({.config = Recurrent(4, "halting { bias: 20 loss_weight: 0.25 }")}, batch,
                     ReferenceBackend());
  const double ponder_losses = 2 * 0.25 * (1 + 1);
  EXPECT_NEAR(halting.Run(), once.Run() + ponder_losses, 1e-7);
  const auto gradients = halting.Gradients();
  for (const auto& [name, gradient] : once.Gradients()) {
    EXPECT_LT(LargestError(gradients.at(name), gradient), 1e-9) << name;
  }
}

// Its ponder loss would depend on no parameter, so there is none.
TEST(Recurrence, ASingleStepHasNoPonderLoss) {
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  ModelTrial once({.config = Recurrent(1, "")}, batch, ReferenceBackend());
  ModelTrial halting({.config = Recurrent(1, "halting {}")}, batch, ReferenceBackend());
  EXPECT_NEAR(halting.Run(), once.Run(), 1e-5);  // one ponder loss would add 0.02
}

// What is added to the loss does not read it: logits would be computed twice.
TEST(Recurrence, APonderLossLeavesTheLossToItsGradient) {
  const Model model(Recurrent(3, "halting {}"));
  ParameterStore parameters = DeclareParameters(model);
  const Program program =
      TrainingProgram(model, parameters, DType::kF32, {2, 7, 5}, {}, TrainConfig::NOTHING);
  std::vector<std::string> losses;
  for (const Instruction& instruction : program.instructions) {
    const std::string op = instruction.op->name;
    if (op.starts_with("linear_cross_entropy")) losses.push_back(op);
  }
  EXPECT_THAT(losses, testing::ElementsAre("linear_cross_entropy_grad"));
}

TEST(Recurrence, EvaluationHasNoPonderLoss) {
  const TrialBatch batch = RandomBatch({2, 7, 5}, kVocabulary);
  const auto both = [&](double loss_weight) {
    ModelTrial trial(
        {.config = Recurrent(3, fmt::format("halting {{ bias: 0 loss_weight: {} }}", loss_weight)),
         .inverse_denominator = 1},
        batch, ReferenceBackend());
    Executable evaluation(
        EvaluationProgram(trial.model(), trial.parameters(), DType::kF32, batch.shape),
        ReferenceBackend(), trial.memory().arenas());
    SetBatch(batch, evaluation);
    const float one = 1;
    evaluation.SetInput("inverse_denominator", std::span(&one, 1));
    evaluation.RunChecked();
    EXPECT_EQ(trial.model().ponders(), loss_weight > 0);
    return std::pair(trial.Run(), evaluation.Scalar("loss"));
  };
  const auto [without, evaluated] = both(0);
  EXPECT_NEAR(without, evaluated, 1e-9);
  const auto [with, also_evaluated] = both(0.5);
  EXPECT_EQ(also_evaluated, evaluated);
  EXPECT_GT(with, evaluated + 2 * 0.5);  // each position takes a step at least
}

std::string RefusalOf(const std::string& lists, const BatchShape& shape) {
  try {
    const Model model(ListedModel(lists));
    EvaluationProgram(model, DeclareParameters(model), DType::kF32, shape);
    model.stack(Side::kDecoder).CheckIsIncremental();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    return error.what();
  }
  return "";
}

TEST(Stack, ARefusalNamesTheLayer) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(RefusalOf(Hybrid("encoder"), {1, 17, 4}),
         "model.encoder.layers[0].mixer.attention.term[0].random.max_length is for 16 positions");
  expect(RefusalOf("decoder { layers {} layers { mixer { attention { heads: 2 head_size: 8 "
                   "index_by: SEGMENT_POSITION term { dense { max_length: 16 } } } } } }",
                   {1, 4, 4}),
         "model.decoder.layers[1].mixer with index_by: SEGMENT_POSITION cannot generate");
  expect(RefusalOf("decoder { layers {} layers { mixer { attention { heads: 4 head_size: 4 } } } }",
                   {1, 4, 4}),
         "model.decoder.layers[1].mixer has 4 heads, but the decoder's relative bias has the 2 of "
         "model.mixer");
  expect(RefusalOf("width: 15 encoder { layers { repeat: 2 recurrence {} } }", {1, 4, 4}),
         "model.width 15 is odd, but model.encoder.layers[0].recurrence's step_signal SINUSOIDAL");
}

}  // namespace
}  // namespace syntra
