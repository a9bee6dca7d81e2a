// SPDX-License-Identifier: Apache-2.0
// A program bound to a backend and to memory, ready to run any number of times without allocating.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/transient_buffer.h"
#include "program/bind.h"
#include "program/memory.h"
#include "program/paint.h"

namespace syntra {

// The flat arenas that outlive programs, in the memory of the backend's device; null where a
// program has no such values. Elements are f32 as the backend stores it.
struct Arenas {
  void* parameters = nullptr;
  void* gradients = nullptr;
  void* state = nullptr;
  // Shared with other executables, of which one runs at a time; null: each has memory of its own.
  TransientBuffer* transients = nullptr;
  // The parameters in bf16, at the same offsets in elements, which updates write and products read
  // in their place; null: products round them. Only where the backend KeepsRounded.
  void* rounded = nullptr;
  // Where products keep parameters packed; only for programs whose parameters do not change. Null:
  // they read the parameters.
  PackedWeights* packed = nullptr;
};

// kPainted is for tests on the host: see program/paint.h. Every transient is followed by a guard.
enum class TransientMemory { kPlain, kPainted };

// How a run treats the gradients in their arena: it adds to them or replaces them, which saves
// writing zeros and reading them back. A gradient that the program does not compute stays as it is.
enum class Gradients { kAdd, kReplace };

// When the parts of a run were done, by the device's clock; valid once the run is done.
struct RunTimes {
  struct Mark {
    std::unique_ptr<Device::Event> event;
    // One kernel has just run `instructions` instructions from this one on; 0: a section begins.
    size_t instruction, instructions;
  };
  const Program* program = nullptr;  // of the executable
  std::vector<Mark> marks;           // in their order, of instructions that do some work
};

class Executable {
 public:
  // The backend must outlive it. Throws Error(kResources) if memory cannot be had or the backend
  // lacks kernels, all of which it names; Error(kInternal) if an instruction uses an arena that is
  // null.
  Executable(std::shared_ptr<const Program> program, Backend& backend, const Arenas& arenas,
             TransientMemory memory = TransientMemory::kPlain);
  // As above, for a program that only this executable needs.
  Executable(Program program, Backend& backend, const Arenas& arenas,
             TransientMemory memory = TransientMemory::kPlain)
      : Executable(std::make_shared<const Program>(std::move(program)), backend, arenas, memory) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Whether the program has an input or a named output of this name.
  bool Has(std::string_view name) const;
  // Writes an input, converting to the element type in which the backend stores it.
  void SetInput(std::string_view name, std::span<const float> values);
  void SetInput(std::string_view name, std::span<const int32_t> values);
  // An input as it was written, or a named output of the last run, in host memory. Waits for that
  // run. Throws for other names. With shared transients, outputs last until another executable is
  // made with them or runs.
  TensorView Tensor(std::string_view name) const;
  // The first element of a named floating-point output.
  double Scalar(std::string_view name) const;

  // Cuts the program into sections of instructions: the i-th ends before instruction ends[i]; ends
  // ascend, the last is the number of instructions. At first there is one section.
  void SetSections(const std::vector<size_t>& ends);

  // `after` is called with the number of each section once its work is enqueued. On a GPU a run
  // only enqueues; from the second run with the same `gradients` on, each section is one CUDA
  // graph, unless `times` are asked for.
  using AfterSection = std::function<void(size_t section)>;
  void Run(Gradients gradients = Gradients::kAdd, const AfterSection& after = {},
           RunTimes* times = nullptr);
  // For tests: as Run, but checks the floating-point outputs of each instruction. Throws
  // Error(kDiverged) that names the first one that makes NaN or plus infinity; minus infinity is
  // the logarithm of an empty sum.
  void RunChecked();

  const Program& program() const { return *program_; }
  const MemoryPlan& plan() const { return plan_; }

 private:
  struct BoundInstruction {
    InstructionKernels kernels;
    std::vector<void*> inputs, outputs;
    std::byte* workspace = nullptr;
  };
  // How a section runs with one choice of Gradients.
  struct Replay {
    bool warm = false;           // it ran once, so every kernel is loaded
    std::function<void()> work;  // from then on: the captured graph
  };
  struct Section {
    size_t begin, end;
    std::array<Replay, 2> replays;  // by Gradients
  };

  void PlaceTransients();
  void FollowTransients();
  // Allocates memory for all values of this kind. On a GPU also `staging`, the host memory to which
  // host_address_ then points.
  Buffer AllocateAll(ValueKind kind, const char* purpose, Buffer& staging);
  void PlaceInputs();
  void PlaceConstants();
  void PlaceArenas(const Arenas& arenas);
  void PlaceOutputs();
  void ConnectInstructions();
  void PaintTransients();
  void Prepare();
  void FetchOutputs();
  void RunSection(const Section& section, Gradients gradients, RunTimes* times = nullptr);
  // Runs an instruction. Returns whether there was something to do.
  bool RunInstruction(size_t i, Gradients gradients = Gradients::kAdd);
  void CheckInstruction(size_t i) const;
  Value InputNamed(std::string_view name) const;
  TensorType StoredType(Value value) const;
  TensorView View(Value value) const;
  TensorView HostView(Value value) const;
  template <typename T>
  void Write(std::string_view name, std::span<const T> values);

  std::shared_ptr<const Program> program_;
  Backend& backend_;
  Device& device_;
  std::vector<BoundInstruction> instructions_;
  MemoryPlan plan_;
  Buffer inputs_, constants_;
  TransientBuffer own_transients_;
  TransientBuffer& transients_;
  std::byte* transients_at_ = nullptr;  // where the transients were when address_ was set
  std::vector<void*> address_;          // per value
  void* rounded_;                       // Arenas
  // Where the device's memory is not the host's: inputs to be sent, outputs that were fetched.
  Buffer sent_, fetched_;
  std::unique_ptr<Device::Event> inputs_sent_;
  std::vector<std::byte*> host_address_;  // per value: inputs, named outputs
  std::vector<Section> sections_;
  std::unique_ptr<Painter> painter_;
};

// The memory that `program` would take on the backend, with or without bf16 copies of the
// parameters. Allocates nothing.
MemoryPlan PlanOn(Backend& backend, const Program& program, bool rounded = false);

}  // namespace syntra
