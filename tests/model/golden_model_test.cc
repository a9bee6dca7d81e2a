// SPDX-License-Identifier: Apache-2.0
// Compares whole models with Hugging Face's T5 (tests/golden/make_t5.py), with torch's Transformer
// (make_transformers.py), with decoders and encoders of both (make_decoders.py,
// make_encoders.py) and with Universal Transformers
// (make_universal.py): logits, loss and every gradient. Also checks that a wrong sign anywhere in
// the backward pass would be noticed.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <ranges>
#include <set>

#include "golden/compare.h"
#include "golden/reader.h"
#include "kernels/tested.h"
#include "model/model_trial.h"
#include "program/numbers.h"

namespace syntra {
namespace {

std::set<std::string> InputsOf(const GoldenFile& golden) {
  const std::vector<std::string> names = golden.Datasets("inputs");
  return {names.begin(), names.end()};
}

// Of the stored inputs.
BatchShape ShapeOf(const GoldenFile& golden) {
  const std::vector<int64_t> targets = golden.Ints("inputs/targets").shape;
  const bool encodes = InputsOf(golden).contains("encoder_ids");
  return {targets[0], encodes ? golden.Ints("inputs/encoder_ids").shape[1] : 0, targets[1]};
}

// The stored inputs; places in rows of one example each where the model reads them and the file has
// none.
void SetInputs(const GoldenFile& golden, Executable& executable) {
  const std::set<std::string> stored = InputsOf(golden);
  for (const std::string& name : stored) {
    const std::vector<int32_t> values = golden.Ints("inputs/" + name).values;
    if (executable.Has(name)) executable.SetInput(name, std::span<const int32_t>(values));
  }
  for (const Side side : {Side::kEncoder, Side::kDecoder}) {
    const std::string stack = NameOf(side), name = stack + "_positions";
    if (stored.contains(stack + "_segments")) {
      SetInversePositions(side, golden.Ints("inputs/" + stack + "_segments").values, executable);
    }
    if (!executable.Has(name) || stored.contains(name)) continue;
    const GoldenArray<int32_t> ids = golden.Ints("inputs/" + stack + "_ids");
    std::vector<int32_t> positions(ids.values.size());
    for (size_t i = 0; i < positions.size(); ++i) {
      positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) % ids.shape[1]);
    }
    executable.SetInput(name, std::span<const int32_t>(positions));
  }
}

struct Fixture {
  const char* file;
  Backend* backend;
  TrainConfig::Recompute recompute;
};

class GoldenModel : public testing::TestWithParam<Fixture> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(golden_.Attribute("/", "config"), &config_));
    model_ = std::make_unique<Model>(config_);
    parameters_ = DeclareParameters(*model_);
    memory_ = std::make_unique<ArenaMemory>(parameters_, *GetParam().backend);
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
    const BatchShape shape = ShapeOf(golden_);
    Executable executable(
        TrainingProgram(*model_, parameters_, DType::kF32, shape, loss, GetParam().recompute),
        *GetParam().backend, memory_->arenas());
    SetInputs(golden_, executable);
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
  std::unique_ptr<Model> model_;
  ParameterStore parameters_;
  std::unique_ptr<ArenaMemory> memory_;
};

TEST_P(GoldenModel, Logits) {
  const GoldenArray<float> stored = golden_.Floats("outputs/logits");
  // What has no segments has no padding.
  const GoldenArray<int32_t> slots =
      golden_.Ints(InputsOf(golden_).contains("decoder_segments") ? "inputs/decoder_segments"
                                                                  : "inputs/targets");
  const BatchShape shape = ShapeOf(golden_);
  Executable executable(LogitsProgram(*model_, parameters_, DType::kF32, shape),
                        *GetParam().backend, memory_->arenas());
  SetInputs(golden_, executable);
  executable.RunChecked();
  std::vector<double> found = Numbers(executable.Tensor("logits"));
  for (size_t i = 0; i < found.size(); ++i) {
    if (slots.values[i / stored.shape[2]] == 0) found[i] = 0;
  }
  ExpectGolden(std::span<const double>(found), stored.values, 1e-5, "logits");
}

TEST_P(GoldenModel, LossAndGradientsPerToken) { Check({}, TargetTokens(), "loss", "gradients"); }

TEST_P(GoldenModel, LossAndGradientsPerSlotWithZLoss) {
  const auto slots = static_cast<double>(golden_.Ints("inputs/targets").values.size());
  Check({.z_loss = 1e-4}, slots, "loss_slots", "gradients_slots");
}

std::string CaseName(const testing::TestParamInfo<Fixture>& info) {
  std::string name = info.param.file;
  name = name.substr(0, name.find('.'));
  name += IsReference(*info.param.backend) ? "_reference" : "_fast";
  return name + (info.param.recompute == TrainConfig::NOTHING ? "" : "_recompute");
}

std::vector<Fixture> Fixtures() {
  std::vector<Fixture> fixtures;
  for (const char* file :
       {"t5_v1_0.h5", "t5_v1_1.h5", "t5_long.h5", "t5_dropout.h5", "t5_dropout_elements.h5",
        "transformer_2017.h5", "transformer_pre_norm.h5", "decoder_t5.h5", "decoder_gpt.h5",
        "decoder_prefix.h5", "encoder_masked.h5", "encoder_mean.h5", "encoder_first.h5",
        "universal_fixed.h5", "universal_halting.h5", "universal_decoder.h5"}) {
    fixtures.push_back({file, &ReferenceBackend(), TrainConfig::NOTHING});
    fixtures.push_back({file, &FastBackend(), TrainConfig::NOTHING});
    fixtures.push_back({file, &FastBackend(), TrainConfig::LAYERS});
  }
  return fixtures;
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenModel, testing::ValuesIn(Fixtures()), CaseName);

// A gradient op with the wrong sign in one result.
struct Mutation {
  const Op* op = nullptr;
  size_t output = 0;
};
Mutation mutation;

void WrongReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                    std::span<const ReferenceTensor> outputs) {
  mutation.op->reference(call, inputs, outputs);
  for (double& number : outputs[mutation.output].numbers) number = -number;
}

// The values that are parameters' gradients, and those on which these depend.
std::set<int> ReachAGradient(const Program& program, const ParameterStore& parameters) {
  std::set<int> reach;
  for (const Instruction& instruction : program.instructions) {
    for (const Value output : instruction.outputs) {
      if (!output || program.info(output).kind != ValueKind::kGradient) continue;
      if (program.info(output).offset < parameters.arena_elements()) reach.insert(output.id);
    }
  }
  const auto reaches = [&](Value value) { return reach.contains(value.id); };
  for (const Instruction& instruction : program.instructions | std::views::reverse) {
    if (!std::ranges::any_of(instruction.outputs, reaches)) continue;
    for (const Value input : instruction.inputs) {
      if (input) reach.insert(input.id);
    }
  }
  return reach;
}

class MutatedModel : public testing::TestWithParam<const char*> {};

// Flips the sign of one result of one step of the backward half at a time.
TEST_P(MutatedModel, FailsTheComparison) {
  const GoldenFile golden(GetParam());
  ModelConfig config;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(golden.Attribute("/", "config"), &config));
  const Model model(config);
  ParameterStore parameters = DeclareParameters(model);
  ArenaMemory memory(parameters, ReferenceBackend());
  for (const Parameter& parameter : parameters.all()) {
    memory.SetParameter(parameter, golden.Floats("parameters/" + parameter.name).values);
  }
  const GoldenArray<int32_t> targets = golden.Ints("inputs/targets");
  const Program program =
      TrainingProgram(model, parameters, DType::kF32, ShapeOf(golden), {}, TrainConfig::NOTHING);
  const auto tokens = std::ranges::count_if(targets.values, [](int32_t id) { return id > 0; });
  const float inverse = 1 / static_cast<float>(tokens);
  // The largest error of a gradient; ExpectGolden allows 1e-5.
  const auto error = [&](const Program& run) {
    Executable executable(run, ReferenceBackend(), memory.arenas());
    SetInputs(golden, executable);
    executable.SetInput("inverse_denominator", std::span(&inverse, 1));
    memory.ClearGradients();
    executable.Run();
    double worst = 0;
    for (const Parameter& parameter : parameters.all()) {
      const std::vector<float> stored = golden.Floats("gradients/" + parameter.name).values;
      worst =
          std::max(worst, LargestError(memory.Gradient(parameter), {stored.begin(), stored.end()}));
    }
    return worst;
  };
  EXPECT_LT(error(program), 1e-5);
  // Of what a gradient op gives, the rest is the loss and its statistics.
  const std::set<int> reach = ReachAGradient(program, parameters);
  std::set<std::string> tried;
  for (size_t i = program.backward_begin; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (!instruction.outputs[k] || !reach.contains(instruction.outputs[k].id)) continue;
      // Each kind of result at least once, and every third of the rest.
      if (!tried.insert(fmt::format("{} {}", instruction.op->name, k)).second && i % 3 != 0)
        continue;
      mutation = {instruction.op, k};
      Op wrong = *instruction.op;
      wrong.reference = &WrongReference;
      wrong.keeps_elements = false;  // so that it runs
      Program mutated = program;
      mutated.instructions[i].op = &wrong;
      EXPECT_GT(error(mutated), 1e-4)
          << "instruction " << i << ", result " << k << " of " << instruction.op->name;
    }
  }
  EXPECT_GT(tried.size(), 8u);
}

INSTANTIATE_TEST_SUITE_P(Files, MutatedModel,
                         testing::Values("t5_v1_0.h5", "t5_v1_1.h5", "transformer_2017.h5",
                                         "decoder_t5.h5", "decoder_gpt.h5", "decoder_prefix.h5",
                                         "encoder_masked.h5", "encoder_mean.h5",
                                         "universal_fixed.h5", "universal_halting.h5"),
                         [](const auto& info) {
                           const std::string file = info.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace syntra
