// SPDX-License-Identifier: Apache-2.0
// The gradient of a ReLU is masked by the product that makes it, where only that reads the ReLU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "program/compositions.h"

namespace syntra {
namespace {

Value Product(Sketch& s, const char* op, const std::string& name, Value x, int64_t out, DType to,
              bool trainable = true) {
  return s.builder.Record(
      op, {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string(NameOf(to))}},
      {x, s.Parameter(name, {s.builder.TypeOf(x).shape[-1], out}, trainable)})[0];
}

struct MaskedNetwork {
  bool fused = true;       // the ReLU is that of matmul_relu
  bool recompute = false;  // the hidden values are not kept
  int readers = 1;         // of the hidden values
  bool frozen = false;     // the weights that their reader multiplies them with
  DType type = DType::kF32;
  int64_t width = 128;  // of the hidden values; masks of others are not the library's on GPUs
};

Sketch RecordMasked(const MaskedNetwork& network) {
  Sketch s;
  Value y;
  s.builder.Region(network.recompute, [&] {
    Value hidden;
    if (network.fused) {
      hidden = Product(s, "matmul_relu", "in", s.X(), network.width, network.type);
    } else {
      hidden = s.Relu(Product(s, "matmul", "in", s.X(), network.width, network.type));
    }
    y = Product(s, "matmul", "out", hidden, kWidth, DType::kF32, !network.frozen);
    if (network.readers == 1) return;
    y = s.One("add", {}, {y, Product(s, "matmul", "other", hidden, kWidth, DType::kF32)});
  });
  s.builder.Differentiate(s.Loss(y));
  return s;
}

int64_t Calls(const Program& program, std::string_view op) {
  return std::ranges::count(program.instructions, op,
                            [](const Instruction& each) { return each.op->name; });
}

void ExpectAlike(double got, double want, DType type, const std::string& what) {
  if (SumsProductsAlike()) {
    EXPECT_EQ(got, want) << what;
  } else {
    const double tolerance = type == DType::kBF16 ? 0.02 : 1e-5;
    EXPECT_NEAR(got, want, tolerance * std::max(1.0, std::abs(want))) << what;
  }
}

void ExpectTheComposition(MaskedNetwork network) {
  for (Backend& backend : Backends()) {
    network.fused = true;
    Running fused(RecordMasked(network), backend);
    network.fused = false;
    Running composed(RecordMasked(network), backend);
    fused.executable.Run();
    composed.executable.Run();
    ExpectAlike(fused.executable.Scalar("loss"), composed.executable.Scalar("loss"), network.type,
                "loss");
    for (const Parameter& p : composed.parameters.all()) {
      const auto got = fused.Gradient(p.name), want = composed.Gradient(p.name);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) ExpectAlike(got[i], want[i], network.type, p.name);
    }
  }
}

TEST(ReluMasks, GiveTheBitsOfAMaskOfItsOwn) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const int64_t width : {67, 128}) ExpectTheComposition({.type = type, .width = width});
  }
}

TEST(ReluMasks, AreComputedAgainWithWhatIsNotKept) {
  ExpectTheComposition({.recompute = true});
  const Program program = std::move(RecordMasked({.recompute = true}).builder).Build();
  for (const Instruction& instruction : program.instructions) {
    if (instruction.op->name != "matmul_relu") continue;
    const bool again = &instruction >= &program.instructions[program.backward_begin];
    EXPECT_EQ(instruction.call.outputs[1].present(), again);
  }
  EXPECT_EQ(Calls(program, "matmul_relu"), 2);
}

// Without a gradient of the weights that multiply them, nothing reads the hidden values again.
TEST(ReluMasks, AreComputedWithoutTheValues) {
  ExpectTheComposition({.recompute = true, .frozen = true});
  const Program program =
      std::move(RecordMasked({.recompute = true, .frozen = true}).builder).Build();
  const auto again = std::ranges::find_if(
      program.instructions.begin() + static_cast<std::ptrdiff_t>(program.backward_begin),
      program.instructions.end(),
      [](const Instruction& each) { return each.op->name == "matmul_relu"; });
  ASSERT_NE(again, program.instructions.end());
  EXPECT_FALSE(again->call.outputs[0].present());
}

TEST(ReluMasks, AreAppliedOnce) {
  const Program program = std::move(RecordMasked({}).builder).Build();
  EXPECT_EQ(Calls(program, "masked_matmul"), 1);
  EXPECT_EQ(Calls(program, "activation_grad"), 0);
}

// The sum of two gradients is masked as a whole, and nobody needs the bits.
TEST(ReluMasks, AreNotForOneReaderOfSeveral) {
  ExpectTheComposition({.readers = 2});
  const Program program = std::move(RecordMasked({.readers = 2}).builder).Build();
  EXPECT_EQ(Calls(program, "masked_matmul"), 0);
  EXPECT_EQ(Calls(program, "activation_grad"), 1);
  EXPECT_FALSE(program.instructions[0].call.outputs[1].present());
}

}  // namespace
}  // namespace syntra
