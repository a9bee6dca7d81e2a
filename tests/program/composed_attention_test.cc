// SPDX-License-Identifier: Apache-2.0
// Attention composed of primitives: outputs and gradients equal those of the op that fuses them.
#include <gtest/gtest.h>

#include <map>

#include "kernels/attention_call.h"
#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"
#include "program/weighted_sum.h"

namespace syntra {
namespace {

using Integers = Attributes::Integers;

constexpr int64_t kExamples = 2, kPositions = 9, kHeads = 3, kHeadSize = 4,
                  kColumns = kHeads * kHeadSize;

struct Operands {
  Value query, key, value, table;
};

// A mask as the fused op is told it, and as a rule for each pair.
struct Mask {
  std::string name;
  attention::Pattern pattern;
  std::vector<int32_t> key_blocks;  // of 4 rows; two for each of the three blocks of queries
  bool (*allows)(int64_t query, int64_t key);
};

const Mask kMasks[] = {
    {"causal", {.causal = true}, {}, [](int64_t i, int64_t j) { return j <= i; }},
    {"window", {.window = 3}, {}, [](int64_t i, int64_t j) { return j > i - 3 && j < i + 3; }},
    {"dilated",
     {.causal = true, .window = 2, .dilation = 3, .globals = 2},
     {},
     [](int64_t i, int64_t j) { return j <= i && (i < 2 || j < 2 || j == i || j == i - 3); }},
    {"blocks", {}, {1, 0, 2, -1, 0, 2}, [](int64_t i, int64_t j) {
       return i < 4 ? j < 8 : i < 8 ? j == 8 : j < 4 || j == 8;
     }}};

Value Fused(ProgramBuilder& builder, const Operands& of, const Mask& mask) {
  std::vector<Value> inputs(attention::kInputCount);
  inputs[attention::kQuery] = of.query;
  inputs[attention::kKey] = of.key;
  inputs[attention::kValue] = of.value;
  inputs[attention::kTable] = of.table;
  const bool blocks = !mask.key_blocks.empty();
  if (blocks) inputs[attention::kKeyBlocks] = builder.Constant({1, 3, 2}, mask.key_blocks);
  return RecordOne(builder, "attention",
                   attention::AttributesOf(kHeads, mask.pattern, blocks ? 4 : 0),
                   std::move(inputs));
}

// -1e9 where a key is hidden.
Value Hiding(ProgramBuilder& builder, const Mask& mask) {
  std::vector<float> hiding;
  for (int64_t i = 0; i < kPositions; ++i) {
    for (int64_t j = 0; j < kPositions; ++j) hiding.push_back(mask.allows(i, j) ? 0.0F : -1e9F);
  }
  return builder.Constant({kPositions, kPositions}, std::move(hiding));
}

Value Composed(ProgramBuilder& builder, const Operands& of, const Mask& mask) {
  const auto one = [&](std::string_view op, Attributes attributes, std::vector<Value> inputs) {
    return RecordOne(builder, op, std::move(attributes), std::move(inputs));
  };
  const Attributes swap_heads = {{"axes", Integers{0, 2, 1, 3}}};
  const auto heads_first = [&](Value x) {
    const Integers heads = {kExamples, kPositions, kHeads, kHeadSize};
    return one("transpose", swap_heads, {one("reshape", {{"shape", heads}}, {x})});
  };
  const auto product = [&](Value a, Value b, bool transpose_b) {
    return one("batch_matmul",
               {{"transpose_a", false},
                {"transpose_b", transpose_b},
                {"dtype", std::string("f32")},
                {"rows_first", Integers{}}},
               {a, b});
  };
  const Value dots = product(heads_first(of.query), heads_first(of.key), true);
  const Value terms = of.table ? one("add", {}, {dots, of.table}) : dots;
  const Value scores = one("add", {}, {terms, Hiding(builder, mask)});
  const Value mixed = product(one("softmax", {}, {scores}), heads_first(of.value), false);
  return one("reshape", {{"shape", Integers{kExamples, kPositions, kColumns}}},
             {one("transpose", swap_heads, {mixed})});
}

// Outputs and gradients by name.
using Results = std::map<std::string, std::vector<double>>;

Results ResultsOf(Backend& backend, const Mask& mask, bool table,
                  Value (*attend)(ProgramBuilder&, const Operands&, const Mask&)) {
  ParameterStore parameters;
  ProgramBuilder builder;
  const auto parameter = [&](const char* name, Shape shape) {
    return builder.Parameter(parameters.Declare({name, shape, Initializer::Normal(1.0), true}));
  };
  const Shape rows = {kExamples, kPositions, kColumns};
  const Value y =
      attend(builder,
             {parameter("query", rows), parameter("key", rows), parameter("value", rows),
              table ? parameter("table", {kHeads, kPositions, kPositions}) : Value{}},
             mask);
  builder.Output("y", y);
  const Value cotangent = builder.Input("cotangent", builder.TypeOf(y));
  builder.Differentiate(WeightedSum(builder, y, cotangent));
  ArenaMemory memory(parameters, backend);
  Executable executable(std::move(builder).Build(), backend, memory.arenas());
  for (const Parameter& p : parameters.all()) {
    memory.SetParameter(p, NormalNumbers(p.name, p.shape.size(), 1.0));
  }
  executable.SetInput("cotangent", std::span<const float>(NormalNumbers("cotangent", rows.size())));
  executable.Run();
  Results results = {{"y", Numbers(executable.Tensor("y"))}};
  for (const Parameter& p : parameters.all()) results["d" + p.name] = memory.Gradient(p);
  return results;
}

TEST(Composition, AttentionIsTheFusedOp) {
  for (Backend& backend : Backends()) {
    for (const Mask& mask : kMasks) {
      for (const bool table : {false, true}) {
        const Results fused = ResultsOf(backend, mask, table, Fused);
        for (const auto& [name, numbers] : ResultsOf(backend, mask, table, Composed)) {
          EXPECT_LT(LargestError(numbers, fused.at(name)), IsReference(backend) ? 1e-12 : 1e-5)
              << name << " of " << mask.name << (table ? " with a table" : "") << " on "
              << backend.name();
        }
      }
    }
  }
}

}  // namespace
}  // namespace syntra
