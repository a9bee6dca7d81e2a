// SPDX-License-Identifier: Apache-2.0
// Ops that end in dropout have the masks of the ops that they are composed of and, where nothing is
// rounded in between, their bits.
#include <gtest/gtest.h>

#include "program/compositions.h"

namespace syntra {
namespace {

struct Fusion {
  std::string op;
  int operands;
  std::string inner;  // what dropout follows
  Attributes inner_attributes;
};

const Fusion kRelu{"relu_dropout", 1, "activation", {{"kind", std::string("relu")}}};
const Fusion kGatedGelu{"gated_gelu_dropout", 2, "gated_gelu", {}};

// A network whose hidden values, in `type`, are those of the fused op or of its composition.
Sketch NetworkOf(const Fusion& fusion, bool fused, DType type, bool per_element) {
  Sketch s;
  const auto product = [&](const std::string& name, Value x, int64_t out, DType to) {
    return s.One(
        "matmul",
        {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string(NameOf(to))}},
        {x, s.Parameter(name, {s.builder.TypeOf(x).shape[-1], out})});
  };
  std::vector<Value> wide;
  for (int i = 0; i < fusion.operands; ++i) {
    wide.push_back(product(fmt::format("in_{}", i), s.X(), 67, type));
  }
  const Value keys = s.builder.Input("keys", {DType::kI32, {kBatch, 2}});
  Value hidden;
  if (fused) {
    wide.push_back(keys);
    hidden =
        s.One(fusion.op, {{"rate", 0.3}, {"site", int64_t{3}}, {"per_element", per_element}}, wide);
  } else {
    hidden = s.One(
        "dropout",
        {{"rate", 0.3}, {"site", int64_t{3}}, {"per_element", per_element}, {"group", int64_t{1}}},
        {s.One(fusion.inner, fusion.inner_attributes, wide), keys});
  }
  s.builder.Differentiate(s.Loss(product("out", hidden, kWidth, DType::kF32)));
  return s;
}

void ExpectTheComposition(const Fusion& fusion, DType type) {
  for (Backend& backend : Backends()) {
    for (const bool per_element : {false, true}) {
      Running fused(NetworkOf(fusion, true, type, per_element), backend);
      Running composed(NetworkOf(fusion, false, type, per_element), backend);
      fused.executable.Run();
      composed.executable.Run();
      EXPECT_EQ(fused.executable.Scalar("loss"), composed.executable.Scalar("loss"));
      for (const Parameter& p : composed.parameters.all()) {
        EXPECT_EQ(fused.Gradient(p.name), composed.Gradient(p.name)) << p.name;
      }
      EXPECT_LT(fused.executable.program().instructions.size(),
                composed.executable.program().instructions.size());
    }
  }
}

TEST(DropoutFusion, ReluHasTheBitsOfItsComposition) {
  for (const DType type : {DType::kF32, DType::kBF16}) ExpectTheComposition(kRelu, type);
}

TEST(DropoutFusion, GatedGeluHasTheBitsOfItsComposition) {
  ExpectTheComposition(kGatedGelu, DType::kF32);
}

}  // namespace
}  // namespace syntra
