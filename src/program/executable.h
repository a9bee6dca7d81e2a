// A program bound to a backend and to memory, ready to run any number of times without allocating.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "program/memory.h"
#include "program/paint.h"

namespace syntra {

// kReference computes everything in double: its arenas, inputs and outputs are f64.
enum class Backend { kReference, kCpu };

// The flat arenas that outlive programs; null where a program has no such values. Elements are f32,
// or f64 on the reference backend.
struct Arenas {
  void* parameters = nullptr;
  void* gradients = nullptr;
  void* state = nullptr;
};

// kPainted is for tests: see program/paint.h. Every transient is followed by a guard.
enum class TransientMemory { kPlain, kPainted };

// What a run does with the gradients that their arena holds: adds to them, or takes their place,
// which saves writing zeros and reading them back. A gradient that the program does not make stays.
enum class Gradients { kAdd, kReplace };

// Seconds per op name.
using OpTimes = std::map<std::string, double>;

// The kernels of a step: to add to gradients and, where it is the first of its program to write
// any, to replace them.
struct StepKernels {
  BoundKernel add;
  std::optional<BoundKernel> replace;

  size_t workspace_bytes() const {
    return std::max(add.workspace_bytes, replace ? replace->workspace_bytes : 0);
  }
};

class Executable {
 public:
  // Throws Error(kResources) if the transient arena cannot be had, Error(kInternal) if a step uses
  // an arena that is null.
  Executable(Program program, Backend backend, const Arenas& arenas,
             TransientMemory memory = TransientMemory::kPlain);

  // An input to write before a run, or a named output to read after one. Throws for other names.
  TensorView Tensor(std::string_view name) const;
  bool Has(std::string_view name) const;
  // Writes an input, converting to the backend's element type.
  void SetInput(std::string_view name, std::span<const float> values);
  void SetInput(std::string_view name, std::span<const int32_t> values);
  // The first element of a named floating-point output.
  double Scalar(std::string_view name) const;

  void Run(Gradients gradients = Gradients::kAdd);
  // As Run, but after each step checks that its floating-point outputs are finite; throws
  // Error(kDiverged) naming the first step that is not.
  void RunChecked();
  // As Run, adding the seconds of each step to its op's entry.
  void RunTimed(OpTimes& times);

  const Program& program() const { return program_; }
  const MemoryPlan& plan() const { return plan_; }
  size_t input_bytes() const { return inputs_.size(); }

 private:
  struct BoundStep {
    StepKernels kernels;
    std::vector<void*> inputs, outputs;
    std::byte* workspace = nullptr;
  };

  void AssignMemory(const Arenas& arenas);
  void PaintTransients();
  void RunStep(size_t i, Gradients gradients = Gradients::kAdd);
  TensorView View(Value value) const;

  Program program_;
  Backend backend_;
  std::vector<BoundStep> steps_;
  MemoryPlan plan_;
  Buffer inputs_, transients_;
  std::vector<void*> address_;  // per value
  std::unique_ptr<Painter> painter_;
};

// What running `program` on the CPU would take, without allocating it.
MemoryPlan PlanOnCpu(const Program& program);

}  // namespace syntra
