// SPDX-License-Identifier: Apache-2.0
// Why runs with ReLU may diverge by more than rounding: if a ReLU's input is zero up to rounding,
// its gradient jumps although the loss does not.
//
// An example found with tests/e2e: after ten steps with one and with two ranks (train.seed=6,
// Adafactor, reduction FAST) the parameters differed in the last bits. In step 11 one of 40,960
// ReLU inputs was -2.3e-7 with one rank and +2.4e-8 with two (encoder layer 1, row 135, unit 60).
// The losses were bitwise equal, but the gradients differed by 1.8e-3 of their norm. One step
// earlier, when no sign differed, it was 5e-7.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "model/model_trial.h"
#include "program/numbers.h"

namespace syntra {
namespace {

constexpr BatchShape kShape{8, 32, 16};
constexpr double kNoise = 1e-5;

// One training step of a small model from slightly different parameters.
class NoisyStep {
 public:
  explicit NoisyStep(FeedForwardConfig::Activation activation)
      : model_([&] {
          ModelConfig config = TinyModel();
          config.mutable_feed_forward()->set_activation(activation);
          config.mutable_feed_forward()->set_width(64);
          return config;
        }()),
        parameters_(DeclareParameters(model_)),
        memory_(parameters_, CpuBackend()) {
    Program program =
        TrainingProgram(model_, parameters_, DType::kF32, kShape, {}, TrainConfig::NOTHING);
    for (size_t i = 0; i < program.backward_begin; ++i) {
      if (program.instructions[i].op->name != std::string_view("matmul_relu")) continue;
      results_.push_back("relu_" + std::to_string(i));
      program.outputs[results_.back()] = program.instructions[i].outputs[0];
    }
    executable_.emplace(std::move(program), CpuBackend(), memory_.arenas());
    SetBatch(RandomBatch(kShape, 32), *executable_);
    const float inverse = 0.01f;
    executable_->SetInput("inverse_denominator", std::span(&inverse, 1));
  }

  struct Result {
    double loss;
    std::vector<double> gradients;
    std::vector<bool> active;  // sign of every ReLU input
  };
  // Every parameter times 1 + kNoise * a normal number; seed 0: as it is.
  Result Run(uint64_t seed) {
    FillParameters(parameters_, memory_);
    for (const Parameter& parameter : parameters_.all()) {
      std::vector<double> values = memory_.ParameterValues(parameter);
      const std::vector<float> noise = NormalNumbers(parameter.name, values.size(), kNoise, seed);
      for (size_t i = 0; i < values.size() && seed > 0; ++i) values[i] *= 1.0 + noise[i];
      memory_.SetParameter(parameter, values);
    }
    memory_.ClearGradients();
    executable_->Run();
    Result result{executable_->Scalar("loss"), {}, {}};
    for (const Parameter& parameter : parameters_.all()) {
      const std::vector<double> gradient = memory_.Gradient(parameter);
      result.gradients.insert(result.gradients.end(), gradient.begin(), gradient.end());
    }
    for (const std::string& name : results_) {
      for (const double x : Numbers(executable_->Tensor(name))) result.active.push_back(x > 0);
    }
    return result;
  }

 private:
  Model model_;
  ParameterStore parameters_;
  ArenaMemory memory_;
  std::vector<std::string> results_;
  std::optional<Executable> executable_;
};

// Distances of noisy gradients from those without noise, relative to their norm.
struct Distances {
  std::vector<double> same;     // where every ReLU input kept its sign
  std::vector<double> changed;  // where one did not
};

Distances Measure(FeedForwardConfig::Activation activation) {
  NoisyStep step(activation);
  const NoisyStep::Result truth = step.Run(0);
  Distances distances;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const NoisyStep::Result noisy = step.Run(seed);
    EXPECT_NEAR(noisy.loss, truth.loss, kNoise * truth.loss);
    (noisy.active == truth.active ? distances.same : distances.changed)
        .push_back(DistanceOf(noisy.gradients, truth.gradients) / Norm(truth.gradients));
  }
  return distances;
}

TEST(ReluKink, GradientsJumpIfAndOnlyIfASignChanged) {
  const Distances relu = Measure(FeedForwardConfig::RELU);
  ASSERT_FALSE(relu.same.empty());
  ASSERT_FALSE(relu.changed.empty());
  EXPECT_LT(std::ranges::max(relu.same), 10 * kNoise);
  EXPECT_GT(std::ranges::min(relu.changed), 10 * kNoise);
  const Distances smooth = Measure(FeedForwardConfig::GATED_GELU);
  EXPECT_TRUE(smooth.changed.empty());
  EXPECT_LT(std::ranges::max(smooth.same), 10 * kNoise);
}

}  // namespace
}  // namespace syntra
