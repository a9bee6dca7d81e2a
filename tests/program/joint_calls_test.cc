// SPDX-License-Identifier: Apache-2.0
// Products of one value with several weights become one, where all that reads them takes columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "program/compositions.h"

namespace syntra {
namespace {

using Join = ProgramBuilder::Join;

constexpr int64_t kInner = 16;  // of two heads
constexpr int64_t kRows = 128;  // of an example

Value Rows(Sketch& s, int64_t rows = kRows) {
  return s.builder.Input("rows", {DType::kF32, {kBatch, rows, kWidth}});
}

struct Network {
  bool joined = true;
  int layers = 1;          // that read the same value
  bool regions = false;    // each layer is one
  bool recompute = false;  // these are computed again
  DType type = DType::kF32;
  int64_t inner = kInner, rows = kRows;
  bool frozen_keys = false;
  Join join = Join::kWithinRegions;
};

// Layers of attention from x, or from their own queries to x. An output by name makes a product
// dense, and so keeps it alone.
Sketch RecordLayers(const Network& network) {
  Sketch s(network.join);
  const Value x =
      s.One("copy", {{"dtype", std::string(NameOf(network.type))}}, {Rows(s, network.rows)});
  Value sum;
  for (int layer = 0; layer < network.layers; ++layer) {
    const std::string prefix = "layer" + std::to_string(layer) + "/";
    const auto record = [&] {
      const std::string type(NameOf(network.type));
      const auto project = [&](const std::string& name, bool trainable) {
        const Value weight = s.Parameter(prefix + name, {kWidth, network.inner}, trainable);
        const Value y =
            s.One("matmul", {{"transpose_a", false}, {"transpose_b", false}, {"dtype", type}},
                  {x, weight});
        if (!network.joined) s.builder.Output(prefix + name, y);
        return y;
      };
      const Value query = project("query", true), key = project("key", !network.frozen_keys);
      const Value value = project("value", true);
      const Value y = s.SelfAttention(query, key, value);
      sum = sum ? s.One("add", {}, {sum, y}) : y;
    };
    if (network.regions) {
      s.builder.Region(network.recompute, record);
    } else {
      record();
    }
  }
  const Value single = s.One("copy", {{"dtype", std::string("f32")}}, {sum});
  s.builder.Differentiate(s.Loss(single));
  return s;
}

// How many matrices the calls of an op multiply with.
std::vector<size_t> Matrices(const Program& program, std::string_view op) {
  std::vector<size_t> matrices;
  for (const Instruction& each : program.instructions) {
    if (each.op->name != op) continue;
    matrices.push_back(op == "joint_matmul" ? each.inputs.size() - 1
                                            : (each.inputs.size() - 1) / 2);
  }
  return matrices;
}

using Counts = std::vector<size_t>;

void ExpectTheSeparateProducts(Network network, double tolerance) {
  for (Backend& backend : Backends()) {
    network.joined = true;
    Sketch sketch = RecordLayers(network);
    Running joined(
        std::move(sketch), backend,
        backend.device().is_host() ? TransientMemory::kPainted : TransientMemory::kPlain);
    EXPECT_FALSE(Matrices(joined.executable.program(), "joint_matmul").empty());
    network.joined = false;
    Running separate(RecordLayers(network), backend);
    EXPECT_TRUE(Matrices(separate.executable.program(), "joint_matmul").empty());
    for (int run = 0; run < 2; ++run) {  // the second adds to the gradients
      joined.executable.Run();
      separate.executable.Run();
    }
    const double loss = separate.executable.Scalar("loss");
    EXPECT_NEAR(joined.executable.Scalar("loss"), loss, tolerance * std::max(1.0, std::abs(loss)));
    for (const Parameter& p : separate.parameters.all()) {
      const auto got = joined.Gradient(p.name), want = separate.Gradient(p.name);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i])))
            << p.name << "[" << i << "] on " << backend.name();
      }
    }
  }
}

TEST(JointCalls, GiveWhatTheSeparateCallsDo) {
  ExpectTheSeparateProducts({}, 1e-5);
  ExpectTheSeparateProducts({.layers = 3}, 1e-5);
  ExpectTheSeparateProducts({.layers = 2, .regions = true, .recompute = true}, 1e-5);
  ExpectTheSeparateProducts({.frozen_keys = true}, 1e-5);
  for (const bool recompute : {false, true}) {
    ExpectTheSeparateProducts(
        {.layers = 2, .regions = true, .recompute = recompute, .join = Join::kAcrossRegions}, 1e-5);
  }
  ExpectTheSeparateProducts({.type = DType::kBF16}, 0.1);
}

TEST(JointCalls, AreOneForAllThatReadTheSameValue) {
  const Program one = std::move(RecordLayers({}).builder).Build();
  EXPECT_EQ(Matrices(one, "joint_matmul"), Counts{3});
  EXPECT_EQ(Matrices(one, "joint_matmul_grad"), Counts{3});
  const Program three = std::move(RecordLayers({.layers = 3}).builder).Build();
  EXPECT_EQ(Matrices(three, "joint_matmul"), Counts{9});
  EXPECT_EQ(Matrices(three, "joint_matmul_grad"), Counts{9});
}

// So recomputing changes no bit.
TEST(JointCalls, StayWithinARegionWhetherItIsComputedAgainOrNot) {
  const auto matrices = [](bool recompute, std::string_view op) {
    Sketch sketch = RecordLayers({.layers = 2, .regions = true, .recompute = recompute});
    return Matrices(std::move(sketch.builder).Build(), op);
  };
  EXPECT_EQ(matrices(false, "joint_matmul"), (Counts{3, 3}));
  EXPECT_EQ(matrices(true, "joint_matmul"), (Counts{3, 3, 3, 3}));  // twice each
  for (const bool recompute : {false, true}) {
    EXPECT_EQ(matrices(recompute, "joint_matmul_grad"), (Counts{3, 3}));
  }
}

// What they give is kept, and what else a region computes is computed again.
TEST(JointCalls, AreOfAllRegionsThatReadTheSameValue) {
  for (const bool recompute : {false, true}) {
    Sketch sketch = RecordLayers(
        {.layers = 2, .regions = true, .recompute = recompute, .join = Join::kAcrossRegions});
    const Program program = std::move(sketch.builder).Build();
    EXPECT_EQ(Matrices(program, "joint_matmul"), Counts{6});
    EXPECT_EQ(Matrices(program, "joint_matmul_grad"), Counts{6});
    const auto attentions = std::ranges::count_if(
        program.instructions, [](const Instruction& each) { return each.op->name == "attention"; });
    EXPECT_EQ(attentions, recompute ? 4 : 2);
  }
  // Of one region they are computed again with it.
  Sketch inner(Join::kAcrossRegions);
  Value x = Rows(inner);
  for (const std::string layer : {"first/", "second/"}) {
    inner.builder.Region(true, [&] {
      x = inner.One("copy", {{"dtype", std::string("f32")}}, {x});
      const auto linear = [&](const char* name) { return inner.Linear(layer + name, x, kInner); };
      const Value query = linear("query"), key = linear("key");
      x = inner.SelfAttention(query, key, linear("value"));
    });
  }
  inner.builder.Differentiate(inner.Loss(x));
  EXPECT_EQ(Matrices(std::move(inner.builder).Build(), "joint_matmul"), (Counts{3, 3, 3, 3}));
}

// Columns begin at multiples of 16 bytes.
TEST(JointCalls, AreNotOfOtherWidths) {
  const Program program = std::move(RecordLayers({.inner = 12}).builder).Build();
  EXPECT_TRUE(Matrices(program, "joint_matmul").empty());
}

TEST(JointCalls, AreNotOfFewRows) {
  const Program program = std::move(RecordLayers({.rows = kRows - 1}).builder).Build();
  EXPECT_TRUE(Matrices(program, "joint_matmul").empty());
}

TEST(JointCalls, AreNotOfResultsThatOthersRead) {
  Sketch s;
  const Value x = Rows(s), query = s.Linear("query", x, kInner), key = s.Linear("key", x, kInner);
  const Value value = s.Linear("value", x, kInner);
  s.builder.Differentiate(s.Loss(s.One("add", {}, {s.SelfAttention(query, key, value), value})));
  EXPECT_EQ(Matrices(std::move(s.builder).Build(), "joint_matmul"), Counts{2});
}

TEST(JointCalls, AreOfDifferentWeights) {
  Sketch s;
  const Value x = Rows(s), query = s.Linear("same", x, kInner), key = s.Linear("same", x, kInner);
  s.builder.Differentiate(s.Loss(s.SelfAttention(query, key, s.Linear("value", x, kInner))));
  EXPECT_EQ(Matrices(std::move(s.builder).Build(), "joint_matmul"), Counts{2});
}

TEST(JointCalls, LieSideBySide) {
  const Program program = std::move(RecordLayers({}).builder).Build();
  const Aliases aliases = FindAliases(program);
  for (const Instruction& each : program.instructions) {
    if (each.op->name != "joint_matmul") continue;
    for (size_t i = 0; i < each.outputs.size(); ++i) {
      const Place& place = aliases.places[each.outputs[i].id];
      EXPECT_EQ(place.holder, each.outputs[0]);
      EXPECT_EQ(place.column, static_cast<int64_t>(i) * kInner);
      EXPECT_EQ(place.pitch, 3 * kInner);
    }
  }
}

}  // namespace
}  // namespace syntra
