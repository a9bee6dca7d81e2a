// SPDX-License-Identifier: Apache-2.0
// Which values lie in one another's memory.
#include "program/aliases.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

// Programs on values x, y and z of the same size, numbered in this order, and an input.
enum Name { kX, kY, kZ, kIn };

class PlanSketch {
 public:
  PlanSketch() {
    program_.values.assign(4, {.type = {DType::kF32, {2, 6}}});
    program_.values[kIn].kind = ValueKind::kInput;
  }
  PlanSketch& Reshape(Name to, Name from, bool accumulate = false) {
    return Call("reshape", {{"shape", Attributes::Integers{2, 6}}}, to, from, accumulate);
  }
  PlanSketch& Scale(Name to, Name from, bool accumulate = false) {
    return Call("affine", {{"scale", 2.0}, {"shift", 0.0}}, to, from, accumulate);
  }
  Name HolderOf(Name name) const {
    return static_cast<Name>(FindAliases(program_).places[name].holder.id);
  }
  bool DoesNothing(size_t instruction) const { return FindAliases(program_).idle[instruction]; }

 private:
  PlanSketch& Call(const char* op, Attributes attributes, Name to, Name from, bool accumulate) {
    const TensorType type = program_.values[kX].type;
    program_.instructions.push_back(
        {&GetOp(op), {std::move(attributes), {type}, {type}, {accumulate}}, {{from}}, {{to}}});
    return *this;
  }

  Program program_;
};

TEST(Aliases, AReshapeLiesInItsInputsMemory) {
  const PlanSketch read = PlanSketch().Scale(kX, kIn).Reshape(kY, kX).Reshape(kZ, kY);
  EXPECT_EQ(read.HolderOf(kY), kX);
  EXPECT_EQ(read.HolderOf(kZ), kX);
  EXPECT_TRUE(read.DoesNothing(1));
  EXPECT_FALSE(read.DoesNothing(0));
}

TEST(Aliases, NotWhereOneIsWrittenWhileTheOtherIsNeeded) {
  const PlanSketch late =
      PlanSketch().Scale(kX, kIn).Reshape(kY, kX).Scale(kY, kIn, true).Scale(kZ, kX);
  EXPECT_EQ(late.HolderOf(kY), kY);
  const PlanSketch early =
      PlanSketch().Scale(kX, kIn).Reshape(kY, kX).Scale(kZ, kX).Scale(kY, kIn, true);
  EXPECT_EQ(early.HolderOf(kY), kX);
  // A kernel must not write x where it reads z.
  const PlanSketch at_once =
      PlanSketch().Scale(kX, kIn).Reshape(kY, kX).Reshape(kZ, kY).Scale(kX, kZ);
  EXPECT_EQ(at_once.HolderOf(kY), kX);
  EXPECT_EQ(at_once.HolderOf(kZ), kZ);
}

TEST(Aliases, WhatIsAddedToAnAliasIsComputed) {
  const PlanSketch sum =
      PlanSketch().Scale(kX, kIn).Scale(kZ, kIn).Reshape(kY, kX).Reshape(kY, kZ, true);
  EXPECT_EQ(sum.HolderOf(kY), kX);
  EXPECT_TRUE(sum.DoesNothing(2));
  EXPECT_FALSE(sum.DoesNothing(3));
}

TEST(Aliases, InputsKeepTheirMemory) {
  EXPECT_EQ(PlanSketch().Reshape(kY, kIn).HolderOf(kY), kY);
  EXPECT_EQ(PlanSketch().Scale(kY, kIn).HolderOf(kY), kY);
}

TEST(Aliases, AnElementwiseResultReplacesAnInputThatIsNotNeeded) {
  const PlanSketch last = PlanSketch().Scale(kX, kIn).Scale(kY, kX).Scale(kZ, kY);
  EXPECT_EQ(last.HolderOf(kY), kX);
  EXPECT_EQ(last.HolderOf(kZ), kX);
  EXPECT_FALSE(last.DoesNothing(1));
  const PlanSketch needed = PlanSketch().Scale(kX, kIn).Scale(kY, kX).Scale(kZ, kX);
  EXPECT_EQ(needed.HolderOf(kY), kY);
  EXPECT_EQ(needed.HolderOf(kZ), kX);
  const PlanSketch as_another =
      PlanSketch().Scale(kX, kIn).Reshape(kY, kX).Scale(kZ, kX).Reshape(kX, kY);
  EXPECT_EQ(as_another.HolderOf(kZ), kZ);
  const PlanSketch sum = PlanSketch().Scale(kX, kIn).Scale(kY, kIn).Scale(kY, kX, true);
  EXPECT_EQ(sum.HolderOf(kY), kY);
}

// A sum over the last axis, whose factor has as many elements but other ones.
TEST(Aliases, ResultsReplaceOnlyInputsOfTheirShape) {
  const TensorType x{DType::kF32, {2, 2, 2}}, factor{DType::kF32, {1, 2, 2}};
  const TensorType y{DType::kF32, {2, 2, 1}};
  Program program;
  program.values = {{.type = x, .kind = ValueKind::kInput}, {.type = factor}, {.type = y}};
  program.instructions.push_back(
      {&GetOp("affine"), {{}, {factor}, {factor}, {false}}, {{0}}, {{1}}});
  program.instructions.push_back(
      {&GetOp("sum_to"), {{}, {x, factor}, {y}, {false}}, {{0}, {1}}, {{2}}});
  EXPECT_EQ(FindAliases(program).places[2].holder.id, 2);
}

}  // namespace
}  // namespace syntra
