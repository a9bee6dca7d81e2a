// SPDX-License-Identifier: Apache-2.0
// Compares every mixer with an independent implementation of its formulas (tests/golden): outputs,
// gradients of all parameters and of the input.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "configs/schema/kind_of.h"
#include "golden/compare.h"
#include "golden/reader.h"
#include "kernels/tested.h"
#include "mixers/mixer.h"
#include "program/arena_memory.h"
#include "program/executable.h"
#include "program/weighted_sum.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

// Positions inside segments: restart at each new segment id.
std::vector<int32_t> PositionsOf(const GoldenArray<int32_t>& segments) {
  std::vector<int32_t> positions(segments.values.size());
  const int64_t length = segments.shape[1];
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool starts = i % length == 0 || segments.values[i] != segments.values[i - 1];
    positions[i] = starts ? 0 : positions[i - 1] + 1;
  }
  return positions;
}

struct GoldenCase {
  std::string file, name;
};

std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases;
  for (const GoldenMixerFile& file : kGoldenMixerFiles) {
    for (const std::string& name : GoldenFile(file.name).Members("/")) {
      cases.push_back({file.name, name});
    }
  }
  return cases;
}

using MixerOnBackend = std::tuple<GoldenCase, std::reference_wrapper<Backend>>;

class GoldenMixer : public testing::TestWithParam<MixerOnBackend> {};

TEST_P(GoldenMixer, OutputAndGradients) {
  const auto& [golden_case, backend] = GetParam();
  const std::string& name = golden_case.name;
  const GoldenFile golden(golden_case.file);
  ModelConfig config;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(golden.Attribute(name, "config"), &config));
  const auto mixer = MakeMixer(config.mixer());
  const GoldenArray<float> x = golden.Floats(name + "/inputs/x");
  const GoldenArray<int32_t> segments = golden.Ints(name + "/inputs/segments");
  const GoldenArray<float> cotangent = golden.Floats(name + "/inputs/cotangent");
  const bool has_bias = mixer->traits().bias_heads > 0;

  // x and the bias table enter as parameters, so that their gradients come out too. The scalar to
  // differentiate is sum(y * cotangent), recorded as a product of one long row and one long column.
  ParameterStore parameters;
  ProgramBuilder builder;
  const std::vector<std::string> inputs = golden.Datasets(name + "/inputs");
  const bool trains = std::ranges::find(inputs, "keys") != inputs.end();
  const Shape ids{segments.shape[0], segments.shape[1]};
  Recording recording{
      .program = builder, .parameters = parameters, .declares = &parameters, .training = trains};
  if (trains) recording.dropout_keys = builder.Input("keys", {DType::kI32, {ids[0], 2}});
  const Scope root(recording);
  const auto as_parameter = [&](const char* input, const std::vector<int64_t>& dims) {
    return root.Parameter(input, Shape(dims), Initializer::Constant(0));
  };
  const Value x_value = as_parameter("input:x", x.shape);
  const Value bias =
      has_bias ? as_parameter("input:bias", golden.Floats(name + "/inputs/bias").shape) : Value{};
  const Value y = mixer->Build(root, {.x = x_value,
                                      .segments = builder.Input("segments", {DType::kI32, ids}),
                                      .positions = builder.Input("positions", {DType::kI32, ids}),
                                      .relative_bias = bias,
                                      .causal = golden.Attribute(name, "causal") == "true"});
  builder.Output("y", y);
  const Value weights = builder.Input("cotangent", builder.TypeOf(y));
  const Value loss = WeightedSum(builder, y, weights);
  builder.Differentiate(loss);

  ArenaMemory memory(parameters, backend);
  const auto stored = [&](const std::string& parameter) {
    const std::string input = "input:";
    return parameter.starts_with(input) ? "/inputs/" + parameter.substr(input.size())
                                        : "/parameters/" + parameter;
  };
  for (const Parameter& parameter : parameters.all()) {
    memory.SetParameter(parameter, golden.Floats(name + stored(parameter.name)).values);
  }
  Executable executable(std::move(builder).Build(), backend, memory.arenas());
  executable.SetInput("segments", std::span<const int32_t>(segments.values));
  const std::vector<int32_t> positions = PositionsOf(segments);
  executable.SetInput("positions", std::span<const int32_t>(positions));
  executable.SetInput("cotangent", std::span<const float>(cotangent.values));
  if (trains) {
    const GoldenArray<int32_t> keys = golden.Ints(name + "/inputs/keys");
    executable.SetInput("keys", std::span<const int32_t>(keys.values));
  }
  executable.RunChecked();

  // Padding rows are stored as zeros and not compared.
  const GoldenArray<float> y_stored = golden.Floats(name + "/outputs/y");
  std::vector<double> y_found(y_stored.values.size());
  const int64_t width = y_stored.shape[2];
  const TensorView view = executable.Tensor("y");
  for (size_t i = 0; i < y_found.size(); ++i) {
    if (segments.values[i / width] == 0) continue;
    y_found[i] = IsReference(backend) ? view.As<double>()[i] : view.As<float>()[i];
  }
  ExpectGolden(std::span<const double>(y_found), y_stored.values, 1e-5, "y");
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable) continue;
    const std::string input = "input:";
    const std::string where = parameter.name.starts_with(input)
                                  ? "/input_gradients/" + parameter.name.substr(input.size())
                                  : "/gradients/" + parameter.name;
    const std::vector<double> found = memory.Gradient(parameter);
    ExpectGolden(std::span<const double>(found), golden.Floats(name + where).values, 1e-5,
                 parameter.name);
  }
}

// The term relative_bias computes the bias of T5's stacks, which golden_model_test compares.
TEST(GoldenMixers, AreOfEveryKindAndTerm) {
  std::set<std::string> kinds, terms{"relative_bias"};
  for (const GoldenCase& each : Cases()) {
    ModelConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        GoldenFile(each.file).Attribute(each.name, "config"), &config));
    kinds.insert(KindOf(config.mixer()));
    for (const ScoreTerm& term : config.mixer().attention().term()) terms.insert(KindOf(term));
  }
  const char* what = "those with cases in a file of tests/golden/reader.h, and those of the schema";
  EXPECT_EQ(kinds, KindNames<MixerConfig>()) << what;
  EXPECT_EQ(terms, KindNames<ScoreTerm>()) << what;
}

std::string CaseName(const testing::TestParamInfo<MixerOnBackend>& info) {
  return std::get<0>(info.param).name +
         (IsReference(std::get<1>(info.param)) ? "_reference" : "_fast");
}

INSTANTIATE_TEST_SUITE_P(Formulas, GoldenMixer,
                         testing::Combine(testing::ValuesIn(Cases()),
                                          testing::ValuesIn(Backends())),
                         CaseName);

}  // namespace
}  // namespace syntra
