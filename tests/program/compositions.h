// SPDX-License-Identifier: Apache-2.0
// Compositions of a few ops, recorded as programs, and in memory with filled parameters and inputs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/tested.h"
#include "nn/attention.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"
#include "program/weighted_sum.h"

namespace syntra {

constexpr int64_t kBatch = 2, kLength = 3, kWidth = 6, kVocabulary = 11, kFirst = 0;

// Records small layers into a program.
class Sketch {
 public:
  explicit Sketch(ProgramBuilder::Join join = ProgramBuilder::Join::kWithinRegions)
      : builder(join) {}

  ProgramBuilder builder;
  ParameterStore parameters;

  Value Parameter(const std::string& name, Shape shape, bool trainable = true) {
    const syntra::Parameter* known = parameters.Find(name);
    if (!known) {
      known = &parameters.Declare({name, shape, Initializer::Normal(0.5), trainable});
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
    const Value loss = WeightedSum(builder, y, builder.Input("cotangent", builder.TypeOf(y)));
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

inline Value SharedInput(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.One("gated_gelu", {}, {s.Linear("left", h), s.Linear("right", h)});
}

// The residual stream's gradient is passed on, and then gets a second contribution.
inline Value PassedOnThenAdded(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  const std::vector<Value> first = s.AddNorm("norm1", h, s.Linear("side", h));
  const std::vector<Value> second = s.AddNorm("norm2", first[0], s.Linear("up", first[1]));
  return s.One("gated_gelu", {}, {second[0], second[1]});
}

inline Value TiedEmbeddings(Sketch& s) {
  const Value ids = s.builder.Input("ids", {DType::kI32, {kBatch, kLength}});
  const Value table = s.Parameter("embedding", {kVocabulary, kWidth});
  const Value h = s.Linear("in", s.One("embedding", {{"dtype", std::string("f32")}}, {ids, table}));
  const Value targets = s.builder.Input("targets", {DType::kI32, {kBatch, kLength}});
  const Value one = s.builder.FillConstant({DType::kF32, {1}}, 0.25);
  Attributes loss{{"scale", 0.7}, {"z_loss", 0.01}, {"label_smoothing", 0.1}, {"first", kFirst}};
  return s.One("linear_cross_entropy", loss, {h, table, targets, one});
}

inline Value ParameterUsedTwice(Sketch& s) { return s.Linear("same", s.Linear("same", s.X())); }

inline Value TransientReadTwice(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.One("gated_gelu", {}, {h, h});
}

inline Value TransientReadTwiceAndOnceMore(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  const Value square = s.One("gated_gelu", {}, {h, h});
  return s.One("gated_gelu", {}, {square, s.Linear("side", h)});
}

inline Value ParameterReadTwice(Sketch& s) {
  const Value p = s.Parameter("p", {2, 4, 3});
  return s.One("gated_gelu", {}, {p, p});
}

inline Value AttentionToItself(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  return s.SelfAttention(h, h, h);
}

inline Value UnusedSum(Sketch& s) { return s.AddNorm("norm", s.X(), s.Linear("in", s.X()))[1]; }

inline Value UnusedNormed(Sketch& s) { return s.AddNorm("norm", s.X(), s.Linear("in", s.X()))[0]; }

inline Value DeadBranch(Sketch& s) {
  const Value h = s.Linear("in", s.X());
  s.Linear("dead", h);
  return s.Relu(h);
}

inline Value ThroughARegion(Sketch& s) {
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

inline Sketch Record(const Composition& composition) {
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

}  // namespace syntra
