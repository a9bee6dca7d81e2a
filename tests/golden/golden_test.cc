// SPDX-License-Identifier: Apache-2.0
// The fixtures can be read, name their origin, and contain what their README says.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "tests/base/error_of.h"
#include "tests/base/source_directory.h"
#include "tests/golden/reader.h"

namespace syntra {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::string Joined(const std::string& group, const std::string& name) { return group + "/" + name; }

// Each of `part` has an entry in `whole` of the same shape, and all values are finite.
void ExpectSameShapes(const GoldenFile& file, const std::string& whole, const std::string& part) {
  std::vector<std::string> names = file.Datasets(whole);
  for (const std::string& name : file.Datasets(part)) {
    ASSERT_TRUE(std::binary_search(names.begin(), names.end(), name)) << part << " " << name;
    GoldenArray<float> array = file.Floats(Joined(part, name));
    EXPECT_EQ(array.shape, file.Floats(Joined(whole, name)).shape) << part << " " << name;
    EXPECT_TRUE(std::all_of(array.values.begin(), array.values.end(),
                            [](float value) { return std::isfinite(value); }));
  }
}

TEST(Fixtures, SayWhereTheyComeFrom) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SourceDirectory() + "/tests/golden")) {
    if (entry.path().extension() != ".h5") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const GoldenFile file(name);
    EXPECT_TRUE(file.Attribute("/", "script").starts_with("make_")) << name;
    EXPECT_NE(file.Attribute("/", "versions").find("numpy 2.4.6"), std::string::npos) << name;
  }
  EXPECT_GE(files, 22);
}

class ModelFixture : public testing::TestWithParam<const char*> {};

TEST_P(ModelFixture, HoldsModelAndGradients) {
  GoldenFile file(GetParam());
  ModelConfig config = Parse<ModelConfig>(file.Attribute("/", "config"));
  std::vector<int64_t> embedding{config.vocabulary_size(), config.width()};
  EXPECT_EQ(file.Floats("parameters/embedding").shape, embedding);
  EXPECT_EQ(file.Datasets("gradients"), file.Datasets("parameters"));
  EXPECT_EQ(file.Datasets("gradients_slots"), file.Datasets("parameters"));
  ExpectSameShapes(file, "parameters", "gradients");
  ExpectSameShapes(file, "parameters", "gradients_slots");

  GoldenArray<int32_t> targets = file.Ints("inputs/targets");
  const bool decodes = config.architecture() == ModelConfig::ENCODER_DECODER ||
                       config.architecture() == ModelConfig::DECODER_ONLY;
  if (decodes) {
    EXPECT_EQ(file.Ints("inputs/decoder_ids").shape, targets.shape);
    EXPECT_EQ(file.Ints("inputs/decoder_segments").shape, targets.shape);
  }
  if (config.architecture() != ModelConfig::DECODER_ONLY) {
    EXPECT_EQ(file.Ints("inputs/encoder_segments").shape, file.Ints("inputs/encoder_ids").shape);
  }
  const bool classes = config.architecture() == ModelConfig::ENCODER_ONLY;
  const int64_t told = classes ? config.classifier().classes() : config.vocabulary_size();
  std::vector<int64_t> logits{targets.shape[0], targets.shape[1], told};
  EXPECT_EQ(file.Floats("outputs/logits").shape, logits);

  auto scalar = [&](const std::string& name) {
    return file.Doubles("outputs/" + name).values.at(0);
  };
  auto tokens = static_cast<double>(std::count_if(targets.values.begin(), targets.values.end(),
                                                  [](int32_t id) { return id > 0; }));
  auto slots = static_cast<double>(targets.values.size());
  const std::vector<std::string> outputs = file.Datasets("outputs");
  const bool ponders = std::binary_search(outputs.begin(), outputs.end(), "ponder_loss");
  const double penalty = ponders ? scalar("ponder_loss") : 0;
  EXPECT_DOUBLE_EQ(scalar("loss"), scalar("cross_entropy_sum") / tokens + penalty);
  EXPECT_DOUBLE_EQ(scalar("loss_slots"),
                   (scalar("cross_entropy_sum") + scalar("z_loss_sum")) / slots + penalty);
}

INSTANTIATE_TEST_SUITE_P(All, ModelFixture,
                         testing::Values("t5_v1_0.h5", "t5_v1_1.h5", "t5_long.h5", "t5_dropout.h5",
                                         "t5_dropout_elements.h5", "transformer_2017.h5",
                                         "transformer_pre_norm.h5", "decoder_t5.h5",
                                         "decoder_gpt.h5", "decoder_prefix.h5", "encoder_masked.h5",
                                         "encoder_mean.h5", "encoder_first.h5",
                                         "universal_fixed.h5", "universal_halting.h5",
                                         "universal_decoder.h5"));

TEST(OptimizersFixture, HoldsTrajectories) {
  GoldenFile file("optimizers.h5");
  std::vector<std::string> names = file.Datasets("optimizers/initial");
  EXPECT_EQ(names.size(), 7u);
  for (const std::string& kind : file.Members("optimizers")) {
    if (kind == "initial" || kind == "gradients") continue;
    std::string group = "optimizers/" + kind;
    OptimizerConfig config = Parse<OptimizerConfig>(file.Attribute(group, "config"));
    std::string upper = OptimizerConfig::Kind_Name(config.kind());
    EXPECT_TRUE(std::equal(kind.begin(), kind.end(), upper.begin(), upper.end(),
                           [](char a, char b) { return std::toupper(a) == b; }));
    EXPECT_EQ(file.Doubles(group + "/rates").shape, std::vector<int64_t>{10});
    EXPECT_EQ(file.Datasets(group + "/parameters"), names);
    ExpectSameShapes(file, "optimizers/gradients", group + "/parameters");
  }
}

TEST(OptimizersFixture, HoldsSchedules) {
  GoldenFile file("optimizers.h5");
  for (const std::string& name : file.Members("schedules")) {
    std::string group = Joined("schedules", name);
    EXPECT_TRUE(Parse<OptimizerConfig>(file.Attribute(group, "config")).has_schedule());
    EXPECT_GT(std::stoi(file.Attribute(group, "total_steps")), 0);
    EXPECT_EQ(file.Ints(group + "/steps").shape, file.Doubles(group + "/rates").shape);
  }
}

bool HasBias(const MixerConfig& mixer) {
  return (mixer.has_attention() && mixer.attention().relative_bias()) ||
         (mixer.has_local_attention() && mixer.local_attention().relative_bias()) ||
         (mixer.has_big_bird() && mixer.big_bird().relative_bias());
}

class MixerFixture : public testing::TestWithParam<GoldenMixerFile> {};

TEST_P(MixerFixture, HoldsCases) {
  GoldenFile file(GetParam().name);
  std::vector<std::string> cases = file.Members("/");
  EXPECT_EQ(cases.size(), GetParam().cases);
  for (const std::string& name : cases) {
    SCOPED_TRACE(name);
    ModelConfig config = Parse<ModelConfig>(file.Attribute(name, "config"));
    EXPECT_TRUE(config.mixer().attention().term_size() > 0 || !config.mixer().has_attention());
    std::string causal = file.Attribute(name, "causal");
    EXPECT_TRUE(causal == "true" || causal == "false");
    GoldenArray<float> x = file.Floats(name + "/inputs/x");
    EXPECT_EQ(x.shape.at(2), config.width());
    EXPECT_EQ(file.Ints(name + "/inputs/segments").shape,
              (std::vector<int64_t>{x.shape[0], x.shape[1]}));
    EXPECT_EQ(file.Floats(name + "/outputs/y").shape, x.shape);
    ExpectSameShapes(file, name + "/parameters", name + "/gradients");
    ExpectSameShapes(file, name + "/inputs", name + "/input_gradients");
    std::vector<std::string> inputs = file.Members(name + "/inputs");
    EXPECT_EQ(std::binary_search(inputs.begin(), inputs.end(), "bias"), HasBias(config.mixer()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MixerFixture, testing::ValuesIn(kGoldenMixerFiles));

TEST(GoldenFile, NamesWhatIsWrong) {
  GoldenFile file("t5_v1_0.h5");
  const std::string error = ErrorOf([&] { file.Ints("outputs/logits"); }, ExitCode::kData);
  EXPECT_NE(error.find("outputs/logits"), std::string::npos);
}

}  // namespace
}  // namespace syntra
