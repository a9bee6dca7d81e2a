// The whole model against Hugging Face's T5 (tests/golden/make_t5.py): loss and every gradient.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "golden/compare.h"
#include "golden/reader.h"
#include "model/programs.h"
#include "program/arena_memory.h"
#include "program/executable.h"

namespace syntra {
namespace {

struct Fixture {
  const char* file;
  Backend backend;
  bool recompute;
};

class GoldenT5 : public testing::TestWithParam<Fixture> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(golden_.Attribute("/", "config"), &config_));
    model_ = std::make_unique<EncoderDecoder>(config_);
    parameters_ = DeclareParameters(*model_);
    memory_ = std::make_unique<ArenaMemory>(parameters_, GetParam().backend);
    size_t stored = 0;
    for (const Parameter& parameter : parameters_.all()) {
      memory_->SetParameter(parameter, golden_.Floats("parameters/" + parameter.name).values);
      ++stored;
    }
    EXPECT_EQ(stored, golden_.Datasets("parameters").size());
  }

  // Runs the training program and compares its gradients with those in `group`.
  void Check(const LossOptions& loss, double denominator, const std::string& loss_name,
             const std::string& group) {
    const GoldenArray<int32_t> source = golden_.Ints("inputs/encoder_ids");
    const GoldenArray<int32_t> target = golden_.Ints("inputs/targets");
    const BatchShape shape{source.shape[0], source.shape[1], target.shape[1]};
    Executable executable(TrainingProgram(*model_, parameters_, DType::kF32, shape, loss,
                                          GetParam().recompute),
                          GetParam().backend, memory_->arenas());
    for (const std::string& name : golden_.Datasets("inputs")) {
      const std::vector<int32_t> values = golden_.Ints("inputs/" + name).values;
      executable.SetInput(name, std::span<const int32_t>(values));
    }
    const float inverse = static_cast<float>(1 / denominator);
    executable.SetInput("inverse_denominator", std::span(&inverse, 1));
    executable.RunChecked();
    const double expected = golden_.Doubles("outputs/" + loss_name).values[0];
    EXPECT_NEAR(executable.Scalar("loss"), expected, 1e-5 * std::abs(expected));
    for (const Parameter& parameter : parameters_.all()) {
      const std::vector<double> found = memory_->Gradient(parameter);
      ExpectGolden(std::span<const double>(found),
                   golden_.Floats(group + '/' + parameter.name).values, 1e-5, parameter.name);
    }
  }

  double TargetTokens() const {
    double tokens = 0;
    for (const int32_t id : golden_.Ints("inputs/targets").values) tokens += id > 0;
    return tokens;
  }

  GoldenFile golden_{GetParam().file};
  ModelConfig config_;
  std::unique_ptr<EncoderDecoder> model_;
  ParameterStore parameters_;
  std::unique_ptr<ArenaMemory> memory_;
};

TEST_P(GoldenT5, LossAndGradientsPerToken) { Check({}, TargetTokens(), "loss", "gradients"); }

TEST_P(GoldenT5, LossAndGradientsPerSlotWithZLoss) {
  const auto slots = static_cast<double>(golden_.Ints("inputs/targets").values.size());
  Check({.z_loss = 1e-4}, slots, "loss_slots", "gradients_slots");
}

std::string CaseName(const testing::TestParamInfo<Fixture>& info) {
  std::string name = info.param.file;
  name = name.substr(0, name.find('.'));
  name += info.param.backend == Backend::kReference ? "_reference" : "_cpu";
  return name + (info.param.recompute ? "_recompute" : "");
}

std::vector<Fixture> Fixtures() {
  std::vector<Fixture> fixtures;
  for (const char* file : {"t5_v1_0.h5", "t5_v1_1.h5", "t5_long.h5"}) {
    fixtures.push_back({file, Backend::kReference, false});
    fixtures.push_back({file, Backend::kCpu, false});
    fixtures.push_back({file, Backend::kCpu, true});
  }
  return fixtures;
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, GoldenT5, testing::ValuesIn(Fixtures()), CaseName);

}  // namespace
}  // namespace syntra
