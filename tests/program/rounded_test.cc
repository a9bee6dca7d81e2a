// SPDX-License-Identifier: Apache-2.0
// Executables that have their parameters also in bf16.
#include <gtest/gtest.h>

#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"

namespace syntra {
namespace {

class RoundedParameters : public testing::Test {
 protected:
  using Results = std::map<std::string, std::vector<double>>;

  void SetUp() override {
    if (!FastBackend().KeepsRounded(DType::kBF16)) GTEST_SKIP() << "only GPUs keep copies";
    Declare("weight", {8, 12});
    Declare("weight_of_heads", {2, 4, 6});
    Declare("embedding", {10, 8});
    Declare("scale", {8});
  }

  // Products of bf16 activations by parameters, and what is none.
  Program Record() const {
    ProgramBuilder builder;
    const Value x = RecordOne(builder, "copy", {{"dtype", "bf16"}},
                              {builder.Input("x", {DType::kF32, {1, 3, 8}})});
    const auto parameter = [&](const char* name) {
      return builder.Parameter(parameters_.Get(name));
    };
    builder.Output("matmul",
                   RecordOne(builder, "matmul",
                             {{"transpose_a", false}, {"transpose_b", false}, {"dtype", "f32"}},
                             {x, parameter("weight")}));
    builder.Output("head_matmul", RecordOne(builder, "head_matmul", {{"heads", 2}},
                                            {x, parameter("weight_of_heads")}));
    builder.Output("linear_log_probability",
                   RecordOne(builder, "linear_log_probability", {{"scale", 0.5}, {"first", 0}},
                             {x, parameter("embedding"),
                              builder.Constant({1, 3}, std::vector<int32_t>{1, 4, 9})}));
    builder.Output("multiply", RecordOne(builder, "multiply", {}, {x, parameter("scale")}));
    return std::move(builder).Build();
  }

  // `copies`: null, or bf16 in the host's memory.
  Results Run(const std::vector<BFloat16>* copies) const {
    Device& device = FastBackend().device();
    ArenaMemory memory(parameters_, FastBackend());
    for (const Parameter& parameter : parameters_.all()) {
      memory.SetParameter(parameter, ValuesOf(parameter));
    }
    Arenas arenas = memory.arenas();
    Buffer rounded;
    if (copies) {
      rounded = device.Allocate(copies->size() * sizeof(BFloat16), "a test's copies");
      device.CopyIn(rounded.data(), copies->data(), rounded.size());
      arenas.rounded = rounded.data();
    }
    Executable executable(Record(), FastBackend(), arenas);
    const std::vector<float> x = NormalNumbers("x", 24);
    executable.SetInput("x", std::span<const float>(x));
    executable.Run();
    Results results;
    for (const auto& [name, value] : executable.program().outputs) {
      results[name] = Numbers(executable.Tensor(name));
    }
    return results;
  }

  std::vector<BFloat16> Rounded() const {
    std::vector<BFloat16> copies(parameters_.arena_elements());
    for (const Parameter& parameter : parameters_.all()) {
      std::ranges::transform(ValuesOf(parameter), copies.begin() + parameter.offset,
                             [](float value) { return ToBFloat16(value); });
    }
    return copies;
  }

  ParameterStore parameters_;

 private:
  void Declare(const char* name, Shape shape) {
    parameters_.Declare({name, std::move(shape), Initializer::Normal(1), true});
  }
  static std::vector<float> ValuesOf(const Parameter& parameter) {
    return NormalNumbers(parameter.name, parameter.shape.size());
  }
};

TEST_F(RoundedParameters, ChangeNoBit) {
  const std::vector<BFloat16> copies = Rounded();
  EXPECT_EQ(Run(&copies), Run(nullptr));
}

TEST_F(RoundedParameters, AreReadByProductsAlone) {
  const std::vector<BFloat16> zeros(parameters_.arena_elements());
  const Results results = Run(&zeros);
  EXPECT_EQ(results.at("matmul"), std::vector<double>(36));
  EXPECT_EQ(results.at("head_matmul"), std::vector<double>(36));
  for (const double logarithm : results.at("linear_log_probability")) {
    EXPECT_NEAR(logarithm, -std::log(10.0), 1e-6);
  }
  EXPECT_EQ(results.at("multiply"), Run(nullptr).at("multiply"));
}

TEST_F(RoundedParameters, TakeNoWorkspaceToRoundIn) {
  const Program program = Record();
  const size_t without = PlanOn(FastBackend(), program).arena_bytes;
  const size_t with = PlanOn(FastBackend(), program, /*rounded=*/true).arena_bytes;
  EXPECT_LT(with, without);
}

}  // namespace
}  // namespace syntra
