// SPDX-License-Identifier: Apache-2.0
// Compares ten steps of each optimizer, and the schedules, with tests/golden/make_optimizers.py.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "golden/compare.h"
#include "golden/reader.h"
#include "kernels/tested.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "program/arena_memory.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

constexpr const char* kFile = "optimizers.h5";

OptimizerConfig ConfigOf(const GoldenFile& golden, const std::string& group) {
  OptimizerConfig config;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(golden.Attribute(group, "config"), &config));
  return config;
}

class GoldenOptimizer : public testing::TestWithParam<
                            std::tuple<OptimizerConfig::Kind, std::reference_wrapper<Backend>>> {};

TEST_P(GoldenOptimizer, TenSteps) {
  const auto& [kind, backend] = GetParam();
  const GoldenFile golden(kFile);
  std::string group = "optimizers/" + OptimizerConfig::Kind_Name(kind);
  std::ranges::transform(group, group.begin(), [](unsigned char c) { return std::tolower(c); });
  ParameterStore parameters;
  for (const std::string& name : golden.Members("optimizers/initial")) {
    const GoldenArray<float> initial = golden.Floats("optimizers/initial/" + name);
    parameters.Declare({name, Shape(initial.shape), Initializer::Constant(0), true});
  }
  const auto optimizer = MakeOptimizer(ConfigOf(golden, group), parameters);
  ArenaMemory memory(parameters, backend, optimizer->state_elements());
  for (const Parameter& parameter : parameters.all()) {
    memory.SetParameter(parameter, golden.Floats("optimizers/initial/" + parameter.name).values);
  }
  Executable update(optimizer->UpdateProgram(parameters).program, backend, memory.arenas());
  const std::vector<double> rates = golden.Doubles(group + "/rates").values;
  for (int step = 0; step < 10; ++step) {
    for (const Parameter& parameter : parameters.all()) {
      const GoldenArray<float> all = golden.Floats("optimizers/gradients/" + parameter.name);
      const size_t size = parameter.shape.size();
      memory.SetGradient(parameter, std::span(all.values).subspan(step * size, size));
    }
    const std::vector<float> hyper = optimizer->Hyper({.step = step, .rate = rates[step]});
    update.SetInput("hyper", std::span<const float>(hyper));
    update.Run();
    for (const Parameter& parameter : parameters.all()) {
      const GoldenArray<float> all = golden.Floats(group + "/parameters/" + parameter.name);
      const size_t size = parameter.shape.size();
      const std::vector<double> found = memory.ParameterValues(parameter);
      ExpectGolden(std::span<const double>(found),
                   std::vector<float>(all.values.begin() + step * size,
                                      all.values.begin() + (step + 1) * size),
                   1e-5, fmt::format("{} after step {}", parameter.name, step));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formulas, GoldenOptimizer,
                         testing::Combine(testing::ValuesIn(EnumValues<OptimizerConfig::Kind>()),
                                          testing::ValuesIn(Backends())),
                         [](const auto& info) {
                           return OptimizerConfig::Kind_Name(std::get<0>(info.param)) +
                                  (IsReference(std::get<1>(info.param)) ? "_reference" : "_fast");
                         });

TEST(Schedule, MatchesTheRecordedRates) {
  const GoldenFile golden(kFile);
  std::set<ScheduleConfig::Kind> recorded;
  for (const std::string& name : golden.Members("schedules")) {
    const std::string group = "schedules/" + name;
    const ScheduleConfig schedule = ConfigOf(golden, group).schedule();
    recorded.insert(schedule.kind());
    const int64_t total = std::stoll(golden.Attribute(group, "total_steps"));
    const GoldenArray<int32_t> steps = golden.Ints(group + "/steps");
    const GoldenArray<double> rates = golden.Doubles(group + "/rates");
    for (size_t i = 0; i < steps.values.size(); ++i) {
      EXPECT_NEAR(LearningRate(schedule, steps.values[i], total), rates.values[i],
                  1e-12 * std::abs(rates.values[i]) + 1e-18)
          << name << " at step " << steps.values[i];
    }
  }
  for (const ScheduleConfig::Kind kind : EnumValues<ScheduleConfig::Kind>()) {
    EXPECT_TRUE(recorded.contains(kind))
        << "make_optimizers.py records no rates of " << ScheduleConfig::Kind_Name(kind);
  }
}

}  // namespace
}  // namespace syntra
