// SPDX-License-Identifier: Apache-2.0
// Properties of all optimizers: separate state, unchanged frozen parameters, scaled gradients,
// equal replicas.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernels/math/hyperparameters.h"
#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/numbers.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

ParameterStore Parameters() {
  ParameterStore parameters;
  parameters.Declare({"matrix", {9, 7}, Initializer::Normal(1), true});
  parameters.Declare({"frozen", {3, 5}, Initializer::Normal(1), false});
  parameters.Declare({"table", {2, 8, 5}, Initializer::Normal(1), true});
  parameters.Declare({"gate", {1}, Initializer::Constant(0), true});
  return parameters;
}

class EveryOptimizer : public testing::TestWithParam<OptimizerConfig::Kind> {
 protected:
  static OptimizerConfig Config() {
    OptimizerConfig config;
    config.set_kind(GetParam());
    config.set_weight_decay(0.01);
    config.set_min_factored_size(4);
    return config;
  }

  // The parameters after updates by gradients `factor` times the usual, which the updates multiply
  // by `gradient_scale` as if they were clipped.
  std::map<std::string, std::vector<double>> Train(double factor, float gradient_scale,
                                                   Backend& backend,
                                                   const ParameterStore& parameters = Parameters(),
                                                   int64_t updates = 3) const {
    const auto optimizer = MakeOptimizer(Config(), parameters);
    ArenaMemory memory(parameters, backend, optimizer->state_elements());
    const auto transients =
        backend.device().is_host() ? TransientMemory::kPainted : TransientMemory::kPlain;
    Executable update(optimizer->UpdateProgram(parameters).program, backend, memory.arenas(),
                      transients);
    for (const Parameter& p : parameters.all()) {
      memory.SetParameter(p, NormalNumbers(p.name, p.shape.size()));
    }
    for (int64_t step = 0; step < updates; ++step) {
      for (const Parameter& p : parameters.all()) {
        const auto gradient = NormalNumbers("gradient of " + p.name, p.shape.size(), factor, step);
        memory.SetGradient(p, gradient);
      }
      std::vector<float> hyper = optimizer->Hyper({.step = step, .rate = 0.01});
      hyper[hyper::kGradientScale] = gradient_scale;
      update.SetInput("hyper", std::span<const float>(hyper));
      update.RunChecked();
    }
    std::map<std::string, std::vector<double>> values;
    for (const Parameter& p : parameters.all()) values[p.name] = memory.ParameterValues(p);
    return values;
  }
};

TEST_P(EveryOptimizer, ChangesWhatLearnsAndNothingElse) {
  const auto values = Train(1, 1, FastBackend());
  const ParameterStore parameters = Parameters();
  for (const Parameter& p : parameters.all()) {
    const std::vector<float> start = NormalNumbers(p.name, p.shape.size());
    const std::vector<double> before(start.begin(), start.end());
    if (p.trainable) {
      EXPECT_NE(values.at(p.name), before) << p.name;
    } else {
      EXPECT_EQ(values.at(p.name), before) << p.name;
    }
  }
}

TEST_P(EveryOptimizer, TakesTheGradientTimesItsScale) {
  const auto scaled = Train(1, 0.25, ReferenceBackend());
  for (const auto& [name, values] : Train(0.25, 1, ReferenceBackend())) {
    EXPECT_LT(LargestError(scaled.at(name), values), 1e-6) << name;
  }
}

TEST_P(EveryOptimizer, BackendsAgree) {
  const auto cpu = Train(1, 1, FastBackend());
  for (const auto& [name, values] : Train(1, 1, ReferenceBackend())) {
    EXPECT_LT(LargestError(cpu.at(name), values), 2e-6) << name;
  }
}

// On a GPU a launch takes a few hundred tensors at most.
TEST_P(EveryOptimizer, TakesManyTensors) {
  ParameterStore many;
  for (int i = 0; i < 600; ++i) {
    const std::string name = fmt::format("p{}", i);
    if (i % 3 == 0) {
      many.Declare({name, {1 + i % 40}, Initializer::Normal(1), true});
    } else {
      many.Declare({name, {4 + i % 5, 4 + i % 7}, Initializer::Normal(1), true});
    }
  }
  const auto fast = Train(1, 1, FastBackend(), many, 1);
  for (const auto& [name, values] : Train(1, 1, ReferenceBackend(), many, 1)) {
    EXPECT_LT(LargestError(fast.at(name), values), 2e-6) << name;
  }
}

TEST_P(EveryOptimizer, KeepsItsTensorsApart) {
  const ParameterStore parameters = Parameters();
  const auto optimizer = MakeOptimizer(Config(), parameters);
  std::set<std::string> names;
  int64_t end = 0;
  for (const StateTensor& tensor : optimizer->state()) {
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    EXPECT_TRUE(tensor.name.starts_with("optimizer/")) << tensor.name;
    EXPECT_EQ(tensor.name.find("frozen"), std::string::npos);
    EXPECT_GE(tensor.offset, end);
    end = tensor.offset + tensor.shape.size();
  }
  EXPECT_LE(end, optimizer->state_elements());
}

TEST_P(EveryOptimizer, RefusesMissingArenas) {
  const ParameterStore parameters = Parameters();
  const auto optimizer = MakeOptimizer(Config(), parameters);
  ArenaMemory memory(parameters, FastBackend(), optimizer->state_elements());
  for (const auto arena : {&Arenas::parameters, &Arenas::gradients, &Arenas::state}) {
    Arenas arenas = memory.arenas();
    arenas.*arena = nullptr;
    EXPECT_THROW(Executable(optimizer->UpdateProgram(parameters).program, FastBackend(), arenas),
                 Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Optim, EveryOptimizer,
                         testing::ValuesIn(EnumValues<OptimizerConfig::Kind>()),
                         [](const auto& info) { return OptimizerConfig::Kind_Name(info.param); });

// One update of every parameter by normal gradients, and what it says of itself.
struct OneUpdate {
  explicit OneUpdate(Backend& backend, OptimizerConfig::Kind kind, double clip_norm)
      : parameters(Parameters()),
        optimizer(MakeOptimizer(ConfigOf(kind, clip_norm), parameters)),
        memory(parameters, backend, optimizer->state_elements()),
        update(optimizer->UpdateProgram(parameters).program, backend, memory.arenas()) {
    for (const Parameter& p : parameters.all()) {
      const std::vector<float> gradient = NormalNumbers(p.name, p.shape.size());
      memory.SetGradient(p, gradient);
      memory.SetParameter(p, gradient);
      for (const float g : gradient) squares += static_cast<double>(g) * g;
    }
  }
  static OptimizerConfig ConfigOf(OptimizerConfig::Kind kind, double clip_norm) {
    OptimizerConfig config;
    config.set_kind(kind);
    config.set_clip_norm(clip_norm);
    config.set_min_factored_size(4);
    return config;
  }
  // Of what the update made of the gradients' factor, which was 1.
  double Run() {
    const std::vector<float> hyper = optimizer->Hyper({.step = 0, .rate = 0.01});
    update.SetInput("hyper", std::span<const float>(hyper));
    update.Run();
    return Numbers(update.Tensor("hyper_now"))[hyper::kGradientScale];
  }
  std::vector<std::vector<double>> Values() const {
    std::vector<std::vector<double>> values;
    for (const Parameter& p : parameters.all()) values.push_back(memory.ParameterValues(p));
    return values;
  }

  ParameterStore parameters;
  std::unique_ptr<Optimizer> optimizer;
  ArenaMemory memory;
  Executable update;
  double squares = 0;
};

// As checkpoints hold it: the row is the mean over the largest axis, of equal ones over the first.
TEST(Adafactor, StateIsNamedByWhatItIsAMeanOf) {
  ParameterStore parameters = Parameters();
  parameters.Declare({"square", {6, 6}, Initializer::Normal(1), true});
  OptimizerConfig config;
  config.set_kind(OptimizerConfig::ADAFACTOR);
  config.set_min_factored_size(4);
  const auto optimizer = MakeOptimizer(config, parameters);
  std::map<std::string, StateTensor> state;
  for (const StateTensor& tensor : optimizer->state()) state.emplace(tensor.name, tensor);
  EXPECT_EQ(state.at("optimizer/matrix/row").shape, (Shape{7}));
  EXPECT_EQ(state.at("optimizer/matrix/column").shape, (Shape{9}));
  EXPECT_EQ(state.at("optimizer/table/row").shape, (Shape{2, 5}));
  EXPECT_EQ(state.at("optimizer/table/column").shape, (Shape{2, 8}));

  ArenaMemory memory(parameters, FastBackend(), optimizer->state_elements());
  Executable update(optimizer->UpdateProgram(parameters).program, FastBackend(), memory.arenas());
  const Parameter& square = parameters.Get("square");
  std::vector<float> gradient;
  for (int i = 0; i < 36; ++i) gradient.push_back(static_cast<float>(1 + i / 6));
  memory.SetGradient(square, gradient);
  const std::vector<float> hyper = optimizer->Hyper({.step = 0, .rate = 0.01});
  update.SetInput("hyper", std::span<const float>(hyper));
  update.Run();
  const auto row = memory.State(state.at("optimizer/square/row").offset, 6);
  const auto column = memory.State(state.at("optimizer/square/column").offset, 6);
  EXPECT_EQ(row.front(), row.back());
  EXPECT_LT(column.front(), column.back());
}

TEST(Update, ClipsByTheNormOfAllGradients) {
  for (Backend& backend : Backends()) {
    OneUpdate plain(backend, OptimizerConfig::ADAMW, 0),
        loose(backend, OptimizerConfig::ADAMW, 1e6), tight(backend, OptimizerConfig::ADAMW, 0.5);
    EXPECT_EQ(plain.Run(), 1);
    EXPECT_EQ(loose.Run(), 1);
    EXPECT_NEAR(tight.Run(), 0.5 / std::sqrt(tight.squares), 1e-6);
    EXPECT_NEAR(tight.update.Scalar("sum_squares"), tight.squares, 1e-6 * tight.squares);
  }
}

// A gradient, or the objective, which lies after them.
TEST(Update, ChangesNothingIfSomethingIsNotFinite) {
  const float bad[] = {std::numeric_limits<float>::infinity(), std::nanf("")};
  for (Backend& backend : Backends()) {
    for (const auto kind : {OptimizerConfig::ADAFACTOR, OptimizerConfig::ADAMW}) {
      for (const float value : bad) {
        for (const bool objective : {false, true}) {
          OneUpdate step(backend, kind, 1);
          Parameter place = step.parameters.all().back();
          place.shape = {1};
          if (objective) place.offset = step.parameters.arena_elements();
          step.memory.SetGradient(place, std::span(&value, 1));
          const auto before = step.Values();
          EXPECT_TRUE(std::isnan(step.Run()));
          EXPECT_EQ(step.Values(), before);
          // And nothing has got into the optimizer's state.
          const float good = 0;
          step.memory.SetGradient(place, std::span(&good, 1));
          EXPECT_TRUE(std::isfinite(step.Run()));
          for (const auto& values : step.Values()) {
            for (const double v : values) EXPECT_TRUE(std::isfinite(v));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace syntra
