// SPDX-License-Identifier: Apache-2.0
// Executables whose products keep their weights packed.
#include <gtest/gtest.h>

#include "kernels/packed_weights.h"
#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"

namespace syntra {
namespace {

constexpr int64_t kPackedWidth = 96, kPackedVocabulary = 1300;  // in blocks of several sizes

class Packed : public testing::TestWithParam<DType> {
 protected:
  using Results = std::map<std::string, std::vector<double>>;

  void SetUp() override {
    if (!FastBackend().device().is_host()) GTEST_SKIP() << "on GPUs no weights are packed";
    for (const auto& [name, columns] : std::map<std::string, int64_t>{
             {"query", 128}, {"value", 64}, {"wide", 200}, {"narrow", 24}}) {
      parameters_.Declare({name, {kPackedWidth, columns}, Initializer::Normal(1), true});
    }
    parameters_.Declare(
        {"embedding", {kPackedVocabulary, kPackedWidth}, Initializer::Normal(1), true});
    memory_.emplace(parameters_, FastBackend());
    Fill("");
  }

  void Fill(const std::string& seed) {
    for (const Parameter& parameter : parameters_.all()) {
      memory_->SetParameter(parameter,
                            NormalNumbers(parameter.name + seed, parameter.shape.size()));
    }
  }

  Program Record(int64_t rows) const {
    ProgramBuilder builder;
    const std::string type(NameOf(GetParam()));
    const Value x = RecordOne(builder, "copy", {{"dtype", type}},
                              {builder.Input("x", {DType::kF32, {rows, 1, kPackedWidth}})});
    const auto parameter = [&](const char* name) {
      return builder.Parameter(parameters_.Get(name));
    };
    const auto product = [&](Value a, Value b, bool transposed = false) {
      return RecordOne(
          builder, "matmul",
          {{"transpose_a", false}, {"transpose_b", transposed}, {"dtype", std::string("f32")}},
          {a, b});
    };
    for (const char* name : {"query", "value", "wide", "narrow"}) {
      builder.Output(name, product(x, parameter(name)));
    }
    builder.Output("logits", product(x, parameter("embedding"), /*transposed=*/true));
    const Value y = RecordOne(builder, "copy", {{"dtype", type}},
                              {builder.Input("y", {DType::kF32, {kPackedWidth, 64}})});
    builder.Output("no parameter", product(x, y));
    const Value best =
        RecordOne(builder, "linear_argmax", {{"scale", 0.5}}, {x, parameter("embedding")});
    builder.Output("best", best);
    builder.Output("log_probability",
                   RecordOne(builder, "linear_log_probability", {{"scale", 0.5}, {"first", 0}},
                             {x, parameter("embedding"), best}));
    return std::move(builder).Build();
  }

  Results Run(Executable& executable, const std::string& seed) const {
    for (const std::string name : {"x", "y"}) {
      const std::vector<float> values =
          NormalNumbers(seed + name, executable.Tensor(name).type.shape.size());
      executable.SetInput(name, std::span<const float>(values));
    }
    executable.Run();
    Results results;
    for (const auto& [name, value] : executable.program().outputs) {
      results[name] = Numbers(executable.Tensor(name));
    }
    return results;
  }

  // With packed weights, and without.
  void ExpectTheSame(Executable& packed, int64_t rows, const std::string& seed) const {
    Executable plain(Record(rows), FastBackend(), memory_->arenas());
    const Results expected = Run(plain, seed), results = Run(packed, seed);
    for (const auto& [name, values] : expected) {
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(results.at(name)[i], values[i], 1e-4) << name << ", element " << i;
      }
    }
  }

  std::unique_ptr<Executable> WithPacked(int64_t rows) {
    Arenas arenas = memory_->arenas();
    arenas.packed = &weights_;
    return std::make_unique<Executable>(Record(rows), FastBackend(), arenas);
  }

  ParameterStore parameters_;
  mutable std::optional<ArenaMemory> memory_;
  PackedWeights weights_;
};

TEST_P(Packed, WeightsGiveTheSameProducts) {
  for (const int64_t rows : {1, 7, 96, 300}) {
    const auto packed = WithPacked(rows);
    for (const char* seed : {"first", "second"}) ExpectTheSame(*packed, rows, seed);
  }
}

TEST_P(Packed, WeightsAreSharedByProductsOfAnyRows) {
  const auto few = WithPacked(8), many = WithPacked(64);
  EXPECT_EQ(weights_.bytes(), 0u);
  Run(*few, "x");
  const size_t bytes = weights_.bytes();
  EXPECT_GT(bytes, 0u);
  Run(*few, "x");
  EXPECT_EQ(weights_.bytes(), bytes);
  Run(*many, "x");
  // With AMX oneDNN has wider panels for many rows of the narrowest weights.
  EXPECT_LT(weights_.bytes(), bytes + bytes / 8);
}

TEST_P(Packed, WeightsThatChangedArePackedAgain) {
  const auto packed = WithPacked(16);
  ExpectTheSame(*packed, 16, "x");
  Fill(" later");
  weights_.Clear();
  ExpectTheSame(*packed, 16, "x");
}

INSTANTIATE_TEST_SUITE_P(Types, Packed, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace syntra
