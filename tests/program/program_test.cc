// SPDX-License-Identifier: Apache-2.0
// Recording, differentiation, recompute regions, memory and execution of small composed programs.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/source_directory.h"
#include "kernels/tested.h"
#include "nn/attention.h"
#include "program/buckets.h"
#include "program/builder.h"
#include "program/finite_differences.h"

namespace syntra {
namespace {

constexpr int64_t kBatch = 2, kLength = 3, kWidth = 6, kVocabulary = 11, kFirst = 0;

// Records small layers into a program.
class Sketch {
 public:
  ProgramBuilder builder;
  ParameterStore parameters;

  Value Parameter(const std::string& name, Shape shape, bool trainable = true) {
    const syntra::Parameter* known = parameters.Find(name);
    if (!known) {
      const std::vector<std::string> axes(shape.rank(), "x");
      known = &parameters.Declare({name, shape, axes, Initializer::Normal(0.5), trainable});
    }
    return builder.Parameter(*known);
  }
  Value One(std::string_view op, Attributes attributes, std::vector<Value> inputs) {
    return RecordOne(builder, op, std::move(attributes), std::move(inputs));
  }
  Value X() { return builder.Input("x", {DType::kF32, {kBatch, kLength, kWidth}}); }
  Value Linear(const std::string& name, Value x, int64_t out = kWidth) {
    return One("matmul",
               {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string("f32")}},
               {x, Parameter(name, {builder.TypeOf(x).shape[-1], out})});
  }
  Value Relu(Value x) { return One("activation", {{"kind", std::string("relu")}}, {x}); }
  std::vector<Value> AddNorm(const std::string& scale, Value x, Value y) {  // {sum, normed}
    return builder.Record(
        "add_norm",
        {{"epsilon", 1e-6}, {"rate", 0.0}, {"site", int64_t{0}}, {"per_element", false}},
        {x, y, Parameter(scale, {builder.TypeOf(y).shape[-1]}), {}});
  }
  Value SelfAttention(Value query, Value key, Value value) {
    return Attention(builder, 2, {.query = query, .key = key, .value = value}, {});
  }
  // sum(y * cotangent)
  Value Loss(Value y) {
    const Value loss = One("weighted_sum", {}, {y, builder.Input("cotangent", builder.TypeOf(y))});
    builder.Output("loss", loss);
    return loss;
  }
};

// A differentiated program in memory, its parameters and inputs filled.
struct Running {
  explicit Running(Sketch sketch, Backend& backend = ReferenceBackend(),
                   TransientMemory transients = TransientMemory::kPlain)
      : parameters(std::move(sketch.parameters)),
        memory(parameters, backend),
        executable(std::move(sketch.builder).Build(), backend, memory.arenas(), transients) {
    for (const Parameter& p : parameters.all()) {
      memory.SetParameter(p, NormalNumbers(p.name, p.shape.size(), 0.5));
    }
    for (const ValueInfo& value : executable.program().values) {
      if (value.kind != ValueKind::kInput) continue;
      const int64_t count = value.type.shape.size();
      if (value.type.dtype == DType::kF32) {
        executable.SetInput(value.name, std::span<const float>(NormalNumbers(value.name, count)));
      } else {
        std::vector<int32_t> ids(count);
        for (int i = 0; i < count; ++i) ids[i] = (i * 5 + 3) % kVocabulary;
        executable.SetInput(value.name, std::span<const int32_t>(ids));
      }
    }
  }
  std::vector<double> Gradient(const std::string& name) {
    return memory.Gradient(parameters.Get(name));
  }

  ParameterStore parameters;
  ArenaMemory memory;
  Executable executable;
};

struct Composition {
  const char* name;
  Value (*record)(Sketch&);  // what the loss is made of
};

Value SharedInput(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.One("gated_gelu", {}, {s.Linear("left", h), s.Linear("right", h)});
}

// The residual stream's gradient is passed on, and then gets a second contribution.
Value PassedOnThenAdded(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  const std::vector<Value> first = s.AddNorm("norm1", h, s.Linear("side", h));
  const std::vector<Value> second = s.AddNorm("norm2", first[0], s.Linear("up", first[1]));
  return s.One("gated_gelu", {}, {second[0], second[1]});
}

Value TiedEmbeddings(Sketch& s) {
  const Value ids = s.builder.Input("ids", {DType::kI32, {kBatch, kLength}});
  const Value table = s.Parameter("embedding", {kVocabulary, kWidth});
  const Value h = s.Linear("in", s.One("embedding", {{"dtype", std::string("f32")}}, {ids, table}));
  const Value targets = s.builder.Input("targets", {DType::kI32, {kBatch, kLength}});
  const Value one = s.builder.FillConstant({DType::kF32, {1}}, 0.25);
  Attributes loss{{"scale", 0.7}, {"z_loss", 0.01}, {"label_smoothing", 0.1}, {"first", kFirst}};
  return s.One("linear_cross_entropy", loss, {h, table, targets, one});
}

Value ParameterUsedTwice(Sketch& s) { return s.Linear("same", s.Linear("same", s.X())); }

Value TransientReadTwice(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.One("gated_gelu", {}, {h, h});
}

Value TransientReadTwiceAndOnceMore(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  const Value square = s.One("gated_gelu", {}, {h, h});
  return s.One("gated_gelu", {}, {square, s.Linear("side", h)});
}

Value ParameterReadTwice(Sketch& s) {
  const Value p = s.Parameter("p", {2, 4, 3});
  return s.One("gated_gelu", {}, {p, p});
}

Value AttentionToItself(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.SelfAttention(h, h, h);
}

Value UnusedSum(Sketch& s) { return s.AddNorm("norm", s.X(), s.Linear("in", s.X()))[1]; }

Value UnusedNormed(Sketch& s) { return s.AddNorm("norm", s.X(), s.Linear("in", s.X()))[0]; }

Value DeadBranch(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  s.Linear("dead", h);
  return s.Relu(h);
}

Value ThroughARegion(Sketch& s) {
  Value h = s.Linear("in", s.X());
  for (const char* layer : {"first", "second"}) {
    s.builder.Region(true, [&] {
      h = s.AddNorm(std::string(layer) + "/norm", h,
                    s.Linear(std::string(layer) + "/out",
                             s.Relu(s.Linear(std::string(layer) + "/in", h, 9))))[0];
    });
  }
  return h;
}

class Compositions : public testing::TestWithParam<Composition> {};

Sketch Record(const Composition& composition) {
  Sketch sketch;
  const Value y = composition.record(sketch);
  Value loss = y;
  if (sketch.builder.TypeOf(y) == TensorType{DType::kF32, {1}}) {
    sketch.builder.Output("loss", y);
  } else {
    loss = sketch.Loss(y);
  }
  sketch.builder.Differentiate(loss);
  return sketch;
}

TEST_P(Compositions, GradientsAgreeWithCentralDifferences) {
  Running running(Record(GetParam()));
  ExpectGradients(running.executable, running.memory, running.parameters);
}

TEST_P(Compositions, BackendsAgree) {
  Running reference(Record(GetParam())), cpu(Record(GetParam()), FastBackend());
  reference.executable.RunChecked();
  cpu.executable.RunChecked();
  EXPECT_NEAR(cpu.executable.Scalar("loss"), reference.executable.Scalar("loss"), 1e-5);
  for (const Parameter& p : reference.parameters.all()) {
    EXPECT_LT(LargestError(cpu.Gradient(p.name), reference.Gradient(p.name)), 4e-6) << p.name;
  }
}

TEST_P(Compositions, GradientsReplaceOrAdd) {
  for (Backend& backend : Backends()) {
    Running running(Record(GetParam()), backend);
    const auto gradients = [&] {
      std::vector<double> all;
      for (const Parameter& p : running.parameters.all()) {
        std::ranges::copy(running.Gradient(p.name), std::back_inserter(all));
      }
      return all;
    };
    running.executable.Run();
    const std::vector<double> once = gradients();
    running.executable.Run();
    const std::vector<double> twice = gradients();
    running.executable.Run(Gradients::kReplace);
    EXPECT_EQ(gradients(), once);
    running.executable.Run(Gradients::kAdd);
    EXPECT_EQ(gradients(), twice);
    EXPECT_NE(once, twice);
  }
}

TEST_P(Compositions, NothingReadsWhatIsDead) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;
    Running plain(Record(GetParam()), backend);
    Running painted(Record(GetParam()), backend, TransientMemory::kPainted);
    plain.executable.Run();
    painted.executable.RunChecked();
    for (const Parameter& p : plain.parameters.all()) {
      EXPECT_EQ(plain.Gradient(p.name), painted.Gradient(p.name)) << p.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Program, Compositions,
                         testing::Values(Composition{"shared_input", SharedInput},
                                         Composition{"passed_on_then_added", PassedOnThenAdded},
                                         Composition{"tied_embeddings", TiedEmbeddings},
                                         Composition{"parameter_used_twice", ParameterUsedTwice},
                                         Composition{"transient_read_twice", TransientReadTwice},
                                         Composition{"transient_read_thrice",
                                                     TransientReadTwiceAndOnceMore},
                                         Composition{"parameter_read_twice", ParameterReadTwice},
                                         Composition{"attention_to_itself", AttentionToItself},
                                         Composition{"unused_sum", UnusedSum},
                                         Composition{"unused_normed", UnusedNormed},
                                         Composition{"dead_branch", DeadBranch},
                                         Composition{"through_a_region", ThroughARegion}),
                         [](const auto& info) { return std::string(info.param.name); });

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
  EXPECT_GT(program.forward_flops, 0);
  EXPECT_EQ(program.forward_flops, longer.forward_flops);
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
  std::map<int, Allocation> allocation_of;
  for (const Allocation& allocation : running.executable.plan().allocations) {
    if (allocation.value) allocation_of[allocation.value.id] = allocation;
  }
  for (size_t i = 0; i < tower.instructions.size(); ++i) {
    for (const auto* operands : {&tower.instructions[i].inputs, &tower.instructions[i].outputs}) {
      for (const Value value : *operands) {
        if (!value || tower.info(value).kind != ValueKind::kTransient) continue;
        EXPECT_LE(allocation_of.at(value.id).first, i);
        EXPECT_GE(allocation_of.at(value.id).last, i);
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
  try {
    running.executable.RunChecked();
    FAIL() << "a NaN went unseen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kDiverged);
    const std::string text = error.what();
    EXPECT_NE(text.find("instruction 1 of"), std::string::npos) << text;
    EXPECT_NE(text.find("matmul of in"), std::string::npos) << text;
  }
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

TEST(Region, RefusesNesting) {
  Sketch s;
  EXPECT_THROW(s.builder.Region(true, [&] { s.builder.Region(true, [] {}); }), Error);
}

// Each piece of the arena holds its last values once its section has run.
TEST_P(Compositions, BucketsAreReadyWhenTheySayIt) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;  // the arena is looked at between sections
    Running running(Record(GetParam()), backend);
    const int64_t elements = running.parameters.arena_elements();
    running.executable.Run(Gradients::kReplace);
    const auto gradients = [&] {
      std::vector<double> all;
      for (const Parameter& p : running.parameters.all()) {
        const std::vector<double> values = running.memory.Gradient(p);
        all.resize(p.offset);  // padding
        all.insert(all.end(), values.begin(), values.end());
      }
      all.resize(elements);
      return all;
    };
    const std::vector<double> last = gradients();
    const auto buckets = GradientBuckets(running.executable.program(), running.parameters, 20);
    std::vector<size_t> ends;
    int64_t covered = 0;
    for (const GradientBucket& bucket : buckets) {
      ends.push_back(bucket.ready);
      covered += bucket.end - bucket.begin;
    }
    EXPECT_EQ(covered, running.parameters.gradient_elements());
    EXPECT_TRUE(std::ranges::is_sorted(ends));
    ends.back() = running.executable.program().instructions.size();
    running.executable.SetSections(ends);
    running.memory.ClearGradients();
    running.executable.Run(Gradients::kReplace, [&](size_t section) {
      const std::vector<double> now = gradients();
      const GradientBucket& bucket = buckets.at(section);
      for (int64_t i = bucket.begin; i < std::min(bucket.end, elements); ++i) {
        EXPECT_EQ(now[i], last[i]) << "element " << i << " after section " << section;
      }
    });
  }
}

// A forward half that gets each piece of the parameters only when it says that it needs it computes
// what one does that has all of them.
TEST_P(Compositions, PiecesAreThereWhenTheyAreNeeded) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;  // pieces come between sections
    Running running(Record(GetParam()), backend);
    const Program& program = running.executable.program();
    const auto gradients = [&] {
      running.executable.Run(Gradients::kReplace);
      std::vector<std::vector<double>> all;
      for (const Parameter& p : running.parameters.all()) all.push_back(running.memory.Gradient(p));
      return all;
    };
    const auto expected = gradients();

    std::vector<ElementRange> pieces = running.parameters.Pieces(20);
    std::ranges::reverse(pieces);  // the forward half begins with the first one
    std::vector<size_t> ends = PiecesNeeded(program, pieces);
    EXPECT_TRUE(std::ranges::is_sorted(ends));
    EXPECT_LE(ends.back(), program.backward_begin);
    ends.push_back(program.instructions.size());
    running.executable.SetSections(ends);

    const size_t size = SizeOf(backend.Held({DType::kF32, {1}}).dtype);
    auto* arena = static_cast<std::byte*>(running.memory.arenas().parameters);
    const std::vector<std::byte> whole(arena, arena + running.parameters.arena_elements() * size);
    std::ranges::fill_n(arena, std::ssize(whole), std::byte{0xFF});  // NaN
    running.executable.Run(Gradients::kReplace, [&](size_t section) {
      if (section == pieces.size()) return;
      const size_t begin = pieces[section].begin * size;
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(begin), pieces[section].size() * size,
                  arena + begin);
    });
    for (size_t i = 0; const Parameter& p : running.parameters.all()) {
      EXPECT_EQ(running.memory.Gradient(p), expected[i++]) << p.name;
    }
  }
}

}  // namespace
}  // namespace syntra
