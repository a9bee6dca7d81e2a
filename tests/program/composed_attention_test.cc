// SPDX-License-Identifier: Apache-2.0
// Attention composed of primitives: outputs and gradients equal those of the op that fuses them.
#include <gtest/gtest.h>

#include <map>

#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"

namespace syntra {
namespace {

using Integers = Attributes::Integers;

constexpr int64_t kBatch = 2, kLength = 5, kHeads = 3, kHeadSize = 4, kWidth = kHeads * kHeadSize;

struct Operands {
  Value query, key, value, table;
};

Value Fused(ProgramBuilder& builder, const Operands& of) {
  return RecordOne(builder, "attention", {{"heads", kHeads}, {"causal", true}},
                   {of.query, of.key, of.value, {}, {}, {}, {}, of.table, {}, {}, {}, {}, {}, {}});
}

// -1e9 where a key comes after its query.
Value CausalMask(ProgramBuilder& builder) {
  std::vector<float> mask;
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t j = 0; j < kLength; ++j) mask.push_back(j > i ? -1e9F : 0.0F);
  }
  return builder.Constant({kLength, kLength}, std::move(mask));
}

Value Composed(ProgramBuilder& builder, const Operands& of) {
  const auto one = [&](std::string_view op, Attributes attributes, std::vector<Value> inputs) {
    return RecordOne(builder, op, std::move(attributes), std::move(inputs));
  };
  const Attributes swap_heads = {{"axes", Integers{0, 2, 1, 3}}};
  const auto heads_first = [&](Value x) {
    const Integers heads = {kBatch, kLength, kHeads, kHeadSize};
    return one("transpose", swap_heads, {one("reshape", {{"shape", heads}}, {x})});
  };
  const auto product = [&](Value a, Value b, bool transpose_b) {
    return one(
        "batch_matmul",
        {{"transpose_a", false}, {"transpose_b", transpose_b}, {"dtype", std::string("f32")}},
        {a, b});
  };
  const Value dots = product(heads_first(of.query), heads_first(of.key), true);
  const Value scores = one("add", {}, {one("add", {}, {dots, of.table}), CausalMask(builder)});
  const Value mixed = product(one("softmax", {}, {scores}), heads_first(of.value), false);
  return one("reshape", {{"shape", Integers{kBatch, kLength, kWidth}}},
             {one("transpose", swap_heads, {mixed})});
}

// Outputs and gradients by name.
using Results = std::map<std::string, std::vector<double>>;

Results ResultsOf(Backend& backend, Value (*attend)(ProgramBuilder&, const Operands&)) {
  ParameterStore parameters;
  ProgramBuilder builder;
  const auto parameter = [&](const char* name, Shape shape) {
    const std::vector<std::string> axes(shape.rank(), "x");
    return builder.Parameter(
        parameters.Declare({name, shape, axes, Initializer::Normal(1.0), true}));
  };
  const Shape rows = {kBatch, kLength, kWidth};
  const Value y =
      attend(builder, {parameter("query", rows), parameter("key", rows), parameter("value", rows),
                       parameter("table", {kHeads, kLength, kLength})});
  builder.Output("y", y);
  const Value cotangent = builder.Input("cotangent", builder.TypeOf(y));
  builder.Differentiate(RecordOne(builder, "weighted_sum", {}, {y, cotangent}));
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
    const Results fused = ResultsOf(backend, Fused), composed = ResultsOf(backend, Composed);
    for (const auto& [name, numbers] : composed) {
      EXPECT_LT(LargestError(numbers, fused.at(name)), IsReference(backend) ? 1e-12 : 1e-5)
          << name << " on " << backend.name();
    }
  }
}

}  // namespace
}  // namespace syntra
