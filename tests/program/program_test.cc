// SPDX-License-Identifier: Apache-2.0
// Recording, recompute regions, memory and execution of small programs.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/source_directory.h"
#include "program/compositions.h"
#include "program/dump.h"
#include "program/finite_differences.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

std::string Stored(const std::string& name) {
  std::ifstream file(SourceDirectory() + "/tests/program/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Dump, PinsTheProgramOfAResidualLayer) {
  EXPECT_EQ(Dump(std::move(Record({"", PassedOnThenAdded}).builder).Build()),
            Stored("residual_layer.txt"));
}

TEST(Dump, PinsARecomputedProgram) {
  EXPECT_EQ(Dump(std::move(Record({"", ThroughARegion}).builder).Build()),
            Stored("recomputed_layers.txt"));
}

// The loss that a program ends in is left to its gradient; one that is read further on is not.
TEST(Dump, PinsALossGivenByItsGradient) {
  Sketch last, read_further;
  const Value loss = TiedEmbeddings(last);
  last.builder.Output("loss", loss);
  last.builder.Differentiate(loss);
  const Program program = std::move(last.builder).Build();
  EXPECT_EQ(Dump(program), Stored("tied_embeddings.txt"));
  read_further.builder.Differentiate(read_further.Loss(TiedEmbeddings(read_further)));
  const Program longer = std::move(read_further.builder).Build();
  EXPECT_EQ(longer.backward_begin, program.backward_begin + 2);  // it and its reader
  EXPECT_GT(program.flops, 0);
  EXPECT_EQ(program.flops, longer.flops);
}

TEST(Flops, CountTheGradientsThatAreWanted) {
  const auto flops_of = [](bool of_x, bool of_weight) {
    Sketch s;
    const auto operand = [&](bool learns, const char* name, Shape shape) {
      return learns ? s.Parameter(name, shape) : s.builder.Input(name, {DType::kF32, shape});
    };
    const Value x = operand(of_x, "x", {2, 5, 12}), weight = operand(of_weight, "weight", {4, 7});
    s.builder.Differentiate(s.Loss(s.One("head_matmul", {{"heads", int64_t{3}}}, {x, weight})));
    return std::move(s.builder).Build().flops / (2.0 * 2 * 5 * 3 * 4 * 7);
  };
  EXPECT_EQ(flops_of(true, true), 3);
  EXPECT_EQ(flops_of(false, true), 2);
  EXPECT_EQ(flops_of(true, false), 2);
}

// The gradients of their sum, whatever depends on what and however often it runs.
TEST(Differentiate, LossesMayDependOnEachOther) {
  Sketch s;
  const auto times = [&](Value x, double scale) {
    return s.One("affine", {{"scale", scale}, {"shift", 0.0}}, {x});
  };
  const Value twice = times(s.Parameter("p", {1}), 2);
  const std::vector<Value> losses{twice, times(twice, 3)};
  s.builder.Differentiate(losses);
  Running running(std::move(s));
  for (int run = 0; run < 3; ++run) {
    running.executable.Run(Gradients::kReplace);
    EXPECT_EQ(running.Gradient("p"), std::vector<double>{8});
  }
}

// Eight residual layers, so that activations outweigh the rest.
Sketch Tower(bool recompute) {
  Sketch s;
  Value h = s.Linear("in", s.X());
  for (int i = 0; i < 8; ++i) {
    s.builder.Region(recompute, [&] {
      const std::string name = fmt::format("layer_{}", i);
      const Value wide = s.Relu(s.Linear(name + "/in", h, 8 * kWidth));
      h = s.AddNorm(name + "/norm", h, s.Linear(name + "/out", wide))[0];
    });
  }
  s.builder.Differentiate(s.Loss(h));
  return s;
}

TEST(Recompute, SameBitsInASmallerArena) {
  for (Backend& backend : Backends()) {
    Running stored(Tower(false), backend), recomputed(Tower(true), backend);
    stored.executable.Run();
    recomputed.executable.Run();
    EXPECT_EQ(stored.executable.Scalar("loss"), recomputed.executable.Scalar("loss"));
    for (const Parameter& p : stored.parameters.all()) {
      EXPECT_EQ(stored.Gradient(p.name), recomputed.Gradient(p.name)) << p.name;
    }
    // Workspaces of the CPU's products outweigh a layer as small as these.
    if (!IsReference(backend)) continue;
    EXPECT_LT(recomputed.executable.plan().arena_bytes,
              stored.executable.plan().arena_bytes * 2 / 3);
  }
}

TEST(MemoryPlan, NoTwoLiveAllocationsOverlap) {
  for (const bool recompute : {false, true}) {
    const Running running(Tower(recompute));
    const MemoryPlan& plan = running.executable.plan();
    EXPECT_GE(plan.arena_bytes, plan.peak_bytes);
    size_t peak = 0;
    for (size_t i = 0; i < running.executable.program().instructions.size(); ++i) {
      std::vector<Allocation> alive;
      for (const Allocation& allocation : plan.allocations) {
        if (allocation.first <= i && i <= allocation.last) alive.push_back(allocation);
      }
      std::ranges::sort(alive, {}, &Allocation::offset);
      size_t sum = 0, end = 0;
      for (const Allocation& allocation : alive) {
        EXPECT_GE(allocation.offset, end) << "at instruction " << i;
        end = allocation.offset + allocation.bytes;
        sum += allocation.bytes;
      }
      EXPECT_LE(end, plan.arena_bytes);
      peak = std::max(peak, sum);
    }
    EXPECT_EQ(peak, plan.peak_bytes);
  }
}

TEST(MemoryPlan, EveryOperandIsAliveAtItsInstruction) {
  const Running running(Tower(true));
  const Program& tower = running.executable.program();
  const MemoryPlan& plan = running.executable.plan();
  std::map<int, Allocation> allocation_of;
  for (const Allocation& allocation : plan.allocations) {
    if (allocation.value) allocation_of[allocation.value.id] = allocation;
  }
  for (size_t i = 0; i < tower.instructions.size(); ++i) {
    for (const auto* operands : {&tower.instructions[i].inputs, &tower.instructions[i].outputs}) {
      for (const Value value : *operands) {
        if (!value || tower.info(value).kind != ValueKind::kTransient) continue;
        const Allocation& allocation = allocation_of.at(plan.places[value.id].holder.id);
        EXPECT_LE(allocation.first, i);
        EXPECT_GE(allocation.last, i);
      }
    }
  }
}

// A plan with a mistake: what instruction 0 writes dies too early.
TEST(Painter, NoticesAWriteOutsideTheOperands) {
  Program program;
  program.instructions.resize(2);
  program.instructions[0].op = program.instructions[1].op = &GetOp("softmax");
  MemoryPlan plan;
  plan.arena_bytes = 256;
  plan.allocations = {{Value{0}, 128, 0, 0, 0}, {Value{1}, 128, 0, 1, 128}};
  std::vector<std::byte> arena(256);
  Painter painter(plan, {64, 64}, arena.data());
  painter.BeginInstruction(0);
  arena[3] = arena[130] = std::byte{1};
  EXPECT_NO_THROW(painter.EndInstruction(0, program));
  painter.BeginInstruction(1);
  EXPECT_EQ(arena[3], std::byte{0xFF});  // dead
  EXPECT_EQ(arena[130], std::byte{1});   // alive
  arena[3] = std::byte{2};
  EXPECT_THROW(painter.EndInstruction(1, program), Error);
  arena[3] = std::byte{0xFF};
  arena[200] = std::byte{2};  // a guard
  EXPECT_THROW(painter.EndInstruction(1, program), Error);
}

TEST(Executable, RunCheckedNamesTheFirstBadInstruction) {
  Running running(Record({"", TiedEmbeddings}), FastBackend());
  EXPECT_NO_THROW(running.executable.RunChecked());
  const Parameter& in = running.parameters.Get("in");
  std::vector<double> values = running.memory.ParameterValues(in);
  values[4] = std::nan("");
  running.memory.SetParameter(in, values);
  const std::string text = ErrorOf([&] { running.executable.RunChecked(); }, ExitCode::kDiverged);
  EXPECT_NE(text.find("instruction 1 of"), std::string::npos) << text;
  EXPECT_NE(text.find("matmul of in"), std::string::npos) << text;
}

TEST(Executable, RefusesMissingArenas) {
  Sketch sketch = Record({"", SharedInput});
  ArenaMemory memory(sketch.parameters, FastBackend());
  const Program program = std::move(sketch.builder).Build();
  Arenas without_parameters = memory.arenas(), without_gradients = memory.arenas();
  without_parameters.parameters = nullptr;
  without_gradients.gradients = nullptr;
  EXPECT_THROW(Executable(program, FastBackend(), without_parameters), Error);
  EXPECT_THROW(Executable(program, FastBackend(), without_gradients), Error);
  EXPECT_NO_THROW(Executable(program, FastBackend(), memory.arenas()));
}

TEST(Executable, RefusesUnknownNamesAndWrongSizes) {
  Running running(Record({"", SharedInput}), FastBackend());
  EXPECT_TRUE(running.executable.Has("loss"));
  EXPECT_FALSE(running.executable.Has("lost"));
  EXPECT_THROW(running.executable.Tensor("lost"), Error);
  const std::vector<float> two(2);
  EXPECT_THROW(running.executable.SetInput("x", std::span<const float>(two)), Error);
}

TEST(Executable, RunsAddToTheGradientArena) {
  Running running(Record({"", SharedInput}));
  running.executable.Run();
  const std::vector<double> once = running.Gradient("in");
  running.executable.Run();
  const std::vector<double> twice = running.Gradient("in");
  for (size_t i = 0; i < once.size(); ++i) EXPECT_DOUBLE_EQ(twice[i], 2 * once[i]);
}

TEST(Differentiate, LeavesFrozenParametersAlone) {
  Sketch s;
  const Value frozen = s.Parameter("frozen", {kWidth, kWidth}, false);
  const Value h = s.One(
      "matmul", {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string("f32")}},
      {s.Linear("in", s.X()), frozen});
  s.builder.Differentiate(s.Loss(h));
  Running running(std::move(s));
  ExpectGradients(running.executable, running.memory, running.parameters);
  running.executable.Run();
  EXPECT_EQ(Norm(running.Gradient("frozen")), 0);
}

TEST(Differentiate, RefusesALossWithoutParametersAndASecondTime) {
  Sketch s;
  EXPECT_THROW(s.builder.Differentiate(s.Loss(s.X())), Error);
  Sketch two = Record({"", SharedInput});
  EXPECT_THROW(two.builder.Differentiate(two.builder.FillConstant({DType::kF32, {1}}, 1)), Error);
}

TEST(Builder, RefusesOneNameForTwoThings) {
  Sketch s;
  s.Parameter("key", {2, 3});
  EXPECT_THROW(s.builder.State("key", {DType::kF32, {2, 3}}, 0), Error);
  s.builder.State("cache", {DType::kF32, {2, 3}}, 0);
  EXPECT_THROW(s.builder.State("cache", {DType::kF32, {2, 3}}, 64), Error);
  EXPECT_NO_THROW(s.builder.State("cache", {DType::kF32, {2, 3}}, 0));
}

TEST(Builder, RefusesAnAbsentOutput) {
  ProgramBuilder builder;
  EXPECT_THROW(builder.Output("y", {}), Error);
}

TEST(Region, RefusesNesting) {
  Sketch s;
  EXPECT_THROW(s.builder.Region(true, [&] { s.builder.Region(true, [] {}); }), Error);
}

}  // namespace
}  // namespace syntra
