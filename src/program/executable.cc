// SPDX-License-Identifier: Apache-2.0
#include "program/executable.h"

#include <algorithm>

#include "kernels/finite.h"

namespace syntra {
namespace {

void Fill(TensorView view, double value) {
  switch (view.type.dtype) {
    case DType::kF32:
      std::ranges::fill(view.As<float>(), static_cast<float>(value));
      break;
    case DType::kF64:
      std::ranges::fill(view.As<double>(), value);
      break;
    case DType::kI32:
      std::ranges::fill(view.As<int32_t>(), static_cast<int32_t>(value));
      break;
    default:
      Fail(ExitCode::kInternal, "no constants of {}", ToString(view.type));
  }
}

// Converts the elements of an input or constant to the type in which the backend stores them.
template <typename T>
void CopyElements(std::span<const T> values, TensorView view) {
  if (view.type.dtype == DType::kF64) {
    std::ranges::copy(values, view.As<double>().begin());
  } else {
    std::ranges::copy(values, view.As<T>().begin());
  }
}

void WriteConstant(const ConstantValue& constant, TensorView view) {
  if (const auto* value = std::get_if<double>(&constant)) return Fill(view, *value);
  if (const auto* numbers = std::get_if<std::vector<float>>(&constant)) {
    return CopyElements<float>(*numbers, view);
  }
  CopyElements<int32_t>(std::get<std::vector<int32_t>>(constant), view);
}

}  // namespace

Executable::Executable(std::shared_ptr<const Program> program, Backend& backend,
                       const Arenas& arenas, TransientMemory memory)
    : program_(std::move(program)),
      backend_(backend),
      device_(backend.device()),
      own_transients_(device_),
      transients_(arenas.transients ? *arenas.transients : own_transients_),
      rounded_(arenas.rounded) {
  SYNTRA_CHECK(memory == TransientMemory::kPlain || !arenas.transients, "shared, painted");
  std::vector<InstructionKernels> kernels =
      BindInstructions(*program_, backend, {rounded_ != nullptr, arenas.packed});
  plan_ = PlanMemory(*program_, WorkspacesOf(kernels), backend,
                     memory == TransientMemory::kPainted ? Buffer::kAlignment : 0);
  for (InstructionKernels& kernel : kernels)
    instructions_.push_back({std::move(kernel), {}, {}, nullptr});
  address_.assign(program_->values.size(), nullptr);
  host_address_.assign(program_->values.size(), nullptr);
  transients_.Reserve(plan_.arena_bytes);
  PlaceTransients();
  PlaceInputs();
  PlaceConstants();
  PlaceArenas(arenas);
  PlaceOutputs();
  ConnectInstructions();
  SetSections({instructions_.size()});
  if (memory == TransientMemory::kPainted) PaintTransients();
}

void Executable::PaintTransients() {
  SYNTRA_CHECK(device_.is_host(), "painted transients in the memory of {}", device_.name());
  std::vector<size_t> used;
  for (const Allocation& allocation : plan_.allocations) {
    const Value value = allocation.value;
    used.push_back(value ? plan_.places[value.id].MemoryOf(StoredType(value)).bytes()
                         : instructions_[allocation.first].kernels.workspace_bytes());
  }
  painter_ = std::make_unique<Painter>(plan_, used, transients_.data());
}

void Executable::PlaceTransients() {
  transients_at_ = transients_.data();
  for (const Allocation& allocation : plan_.allocations) {
    if (allocation.value) {
      address_[allocation.value.id] = transients_at_ + allocation.offset;
    } else {
      instructions_[allocation.first].workspace = transients_at_ + allocation.offset;
    }
  }
  for (int i = 0; i < std::ssize(address_); ++i) {
    const auto& [holder, column, pitch] = plan_.places[i];
    if (holder.id == i) continue;
    address_[i] =
        static_cast<std::byte*>(address_[holder.id]) + column * SizeOf(StoredType({i}).dtype);
  }
}

// Follows the transients to where another executable, which needed more memory, has moved them.
void Executable::FollowTransients() {
  if (transients_at_ == transients_.data()) return;
  PlaceTransients();
  PlaceOutputs();
  ConnectInstructions();
  for (Section& section : sections_) section.replays = {};
}

Buffer Executable::AllocateAll(ValueKind kind, const char* purpose, Buffer& staging) {
  size_t bytes = 0;
  std::vector<std::pair<size_t, size_t>> places;  // of each value
  for (size_t i = 0; i < program_->values.size(); ++i) {
    if (program_->values[i].kind != kind) continue;
    places.emplace_back(i, bytes);
    bytes += AlignUp(backend_.Stored(program_->values[i].type).bytes());
  }
  Buffer memory = device_.Allocate(bytes, purpose);
  if (!device_.is_host()) staging = device_.AllocateStaging(bytes, purpose);
  for (const auto& [i, place] : places) {
    address_[i] = memory.data() + place;
    host_address_[i] = (device_.is_host() ? memory : staging).data() + place;
  }
  return memory;
}

void Executable::PlaceInputs() {
  inputs_ = AllocateAll(ValueKind::kInput, "inputs", sent_);
  inputs_sent_ = device_.MakeEvent();
}

void Executable::PlaceConstants() {
  Buffer staging;
  constants_ = AllocateAll(ValueKind::kConstant, "constants", staging);
  for (size_t i = 0; i < program_->values.size(); ++i) {
    const ValueInfo& info = program_->values[i];
    if (info.kind == ValueKind::kConstant) {
      WriteConstant(info.constant, HostView({static_cast<int>(i)}));
    }
  }
  if (staging.size() > 0) device_.CopyIn(constants_.data(), staging.data(), staging.size());
}

void Executable::PlaceArenas(const Arenas& arenas) {
  const size_t element = backend_.Stored({DType::kF32, {1}}).bytes();
  for (size_t i = 0; i < program_->values.size(); ++i) {
    const ValueInfo& info = program_->values[i];
    const auto place = [&](void* arena) {
      if (arena) address_[i] = static_cast<std::byte*>(arena) + info.offset * element;
    };
    if (info.kind == ValueKind::kParameter) place(arenas.parameters);
    if (info.kind == ValueKind::kGradient) place(arenas.gradients);
    if (info.kind == ValueKind::kState) place(arenas.state);
  }
}

void Executable::PlaceOutputs() {
  std::vector<size_t> place;
  size_t bytes = 0;
  for (const auto& [name, value] : program_->outputs) {
    place.push_back(bytes);
    bytes += AlignUp(View(value).type.bytes());
  }
  if (!device_.is_host() && fetched_.size() < bytes) {
    fetched_ = device_.AllocateStaging(bytes, "outputs");
  }
  size_t next = 0;
  for (const auto& [name, value] : program_->outputs) {
    host_address_[value.id] = device_.is_host() ? static_cast<std::byte*>(address_[value.id])
                                                : fetched_.data() + place[next++];
  }
}

void Executable::ConnectInstructions() {
  const auto address = [&](const Instruction& instruction, Value value) -> void* {
    if (!value) return nullptr;
    SYNTRA_CHECK(address_[value.id], "{} uses {}, whose arena is not there", instruction.op->name,
                 program_->info(value).name);
    return address_[value.id];
  };
  const auto copy = [&](Value parameter) -> void* {
    return static_cast<BFloat16*>(rounded_) + program_->info(parameter).offset;
  };
  for (size_t i = 0; i < instructions_.size(); ++i) {
    instructions_[i].inputs.clear();
    instructions_[i].outputs.clear();
    for (size_t j = i; j < i + instructions_[i].kernels.instructions; ++j) {
      const Instruction& instruction = program_->instructions[j];
      const UsedCopies& copies = instructions_[j].kernels.copies;
      for (size_t k = 0; k < instruction.inputs.size(); ++k) {
        const Value v = instruction.inputs[k];
        instructions_[i].inputs.push_back(copies.read.contains(k) ? copy(v)
                                                                  : address(instruction, v));
      }
      for (const Value v : instruction.outputs)
        instructions_[i].outputs.push_back(address(instruction, v));
      if (copies.written) instructions_[i].outputs.push_back(copy(instruction.outputs[0]));
    }
  }
}

TensorType Executable::StoredType(Value value) const {
  TensorType type = backend_.Stored(program_->info(value).type);
  type.pitch = plan_.places[value.id].pitch;
  return type;
}

TensorView Executable::View(Value value) const {
  return {address_[value.id], StoredType(value), &device_};
}

TensorView Executable::HostView(Value value) const {
  return {host_address_[value.id], StoredType(value)};
}

Value Executable::InputNamed(std::string_view name) const {
  for (size_t i = 0; i < program_->values.size(); ++i) {
    const ValueInfo& info = program_->values[i];
    if (info.kind == ValueKind::kInput && info.name == name) return {static_cast<int>(i)};
  }
  return {};
}

bool Executable::Has(std::string_view name) const {
  return program_->outputs.contains(std::string(name)) || InputNamed(name);
}

TensorView Executable::Tensor(std::string_view name) const {
  if (const auto it = program_->outputs.find(std::string(name)); it != program_->outputs.end()) {
    device_.Wait();
    return HostView(it->second);
  }
  const Value input = InputNamed(name);
  if (!input) Fail(ExitCode::kInternal, "the program has no tensor {}", name);
  return HostView(input);
}

template <typename T>
void Executable::Write(std::string_view name, std::span<const T> values) {
  const Value input = InputNamed(name);
  SYNTRA_CHECK(input, "the program has no input {}", name);
  inputs_sent_->Wait();
  const TensorView view = HostView(input);
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == view.type.shape.size(), "input {}", name);
  CopyElements(values, view);
}

void Executable::SetInput(std::string_view name, std::span<const float> values) {
  Write(name, values);
}

void Executable::SetInput(std::string_view name, std::span<const int32_t> values) {
  Write(name, values);
}

double Executable::Scalar(std::string_view name) const {
  const TensorView view = Tensor(name);
  return view.type.dtype == DType::kF64 ? view.As<double>()[0] : view.As<float>()[0];
}

void Executable::Prepare() {
  FollowTransients();
  if (sent_.size() == 0) return;
  device_.Send(inputs_.data(), sent_.data(), sent_.size());
  inputs_sent_->Record();
}

void Executable::FetchOutputs() {
  if (device_.is_host()) return;
  for (const auto& [name, value] : program_->outputs) {
    const TensorView view = View(value);
    device_.Fetch(host_address_[value.id], view.data, view.type.bytes());
  }
}

bool Executable::RunInstruction(size_t i, Gradients gradients) {
  const BoundInstruction& instruction = instructions_[i];
  const InstructionKernels& kernels = instruction.kernels;
  if (kernels.instructions == 0) return false;
  if (painter_) painter_->BeginInstruction(i);
  const bool replace = gradients == Gradients::kReplace && kernels.replace;
  const BoundKernel& kernel = replace ? *kernels.replace : kernels.add;
  if (kernel.run) {
    kernel.run({instruction.inputs, instruction.outputs, instruction.workspace, device_.stream()});
  }
  if (painter_) painter_->EndInstruction(i, *program_);
  return kernel.run != nullptr;
}

void Executable::RunSection(const Section& section, Gradients gradients, RunTimes* times) {
  const auto mark = [&](size_t instruction, size_t count) {
    if (!times) return;
    times->marks.push_back({device_.MakeEvent(), instruction, count});
    times->marks.back().event->Record();
  };
  mark(section.begin, 0);
  for (size_t i = section.begin; i < section.end; ++i) {
    if (RunInstruction(i, gradients)) mark(i, instructions_[i].kernels.instructions);
  }
  if (section.end == instructions_.size()) FetchOutputs();
}

void Executable::SetSections(const std::vector<size_t>& ends) {
  sections_.clear();
  size_t begin = 0;
  for (const size_t end : ends) {
    SYNTRA_CHECK(end >= begin && end <= instructions_.size(),
                 "a section [{}, {}) of {} instructions", begin, end, instructions_.size());
    SYNTRA_CHECK(end == instructions_.size() || instructions_[end].kernels.instructions > 0,
                 "a section ends at instruction {}, among updates that one kernel does", end);
    sections_.push_back({begin, end, {}});
    begin = end;
  }
  SYNTRA_CHECK(begin == instructions_.size(), "sections end at {} of {} instructions", begin,
               instructions_.size());
}

void Executable::Run(Gradients gradients, const AfterSection& after, RunTimes* times) {
  Prepare();
  if (times) times->program = program_.get();
  for (size_t i = 0; i < sections_.size(); ++i) {
    const Section& section = sections_[i];
    Replay& replay = sections_[i].replays[static_cast<size_t>(gradients)];
    if (device_.is_host() || !replay.warm || times) {
      RunSection(section, gradients, times);
      replay.warm = true;
    } else {
      if (!replay.work) {
        replay.work =
            device_.Capture([&section, gradients, this] { RunSection(section, gradients); });
      }
      replay.work();
    }
    if (after) after(i);
  }
}

void Executable::RunChecked() {
  Prepare();
  for (size_t i = 0; i < instructions_.size(); ++i) {
    RunInstruction(i);
    CheckInstruction(i);
  }
  FetchOutputs();
}

void Executable::CheckInstruction(size_t i) const {
  const Instruction& instruction = program_->instructions[i];
  for (size_t k = 0; k < instruction.outputs.size(); ++k) {
    if (!instruction.outputs[k]) continue;
    const TensorView view = View(instruction.outputs[k]);
    std::vector<std::byte> copy(device_.is_host() ? 0 : view.type.bytes());
    if (!device_.is_host()) device_.CopyOut(copy.data(), view.data, copy.size());
    if (AllFinite({device_.is_host() ? view.data : copy.data(), view.type})) continue;
    std::string inputs;
    for (const Value input : instruction.inputs) {
      if (input && !program_->info(input).name.empty()) inputs += ' ' + program_->info(input).name;
    }
    Fail(ExitCode::kDiverged,
         "instruction {} of {}, {}{}, makes a value that is not finite (output {})", i,
         instructions_.size(), instruction.op->name, inputs.empty() ? "" : " of" + inputs, k);
  }
}

MemoryPlan PlanOn(Backend& backend, const Program& program, bool rounded) {
  return PlanMemory(program, WorkspacesOf(BindInstructions(program, backend, {rounded})), backend);
}

}  // namespace syntra
