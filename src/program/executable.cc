#include "program/executable.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "kernels/bfloat16.h"
#include "program/bind.h"

namespace syntra {
namespace {

size_t BytesOnReference(const TensorType& type) {
  return BackendType(type, Backend::kReference).bytes();
}
size_t BytesOnCpu(const TensorType& type) { return type.bytes(); }

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

// Minus infinity passes: it is the logarithm of an empty sum (attention where nothing is allowed).
bool AllFinite(TensorView view) {
  const auto finite = [](const auto& values, const auto& number) {
    return std::ranges::all_of(
        values, [&](auto v) { return number(v) < std::numeric_limits<double>::infinity(); });
  };
  switch (view.type.dtype) {
    case DType::kF32:
      return finite(view.As<float>(), [](float v) { return v; });
    case DType::kF64:
      return finite(view.As<double>(), [](double v) { return v; });
    case DType::kBF16:
      return finite(view.As<BFloat16>(), [](BFloat16 v) { return ToFloat(v); });
    default:
      return true;
  }
}

std::vector<StepKernels> BindSteps(const Program& program, Backend backend) {
  std::vector<StepKernels> kernels;
  std::set<int> written;
  for (const Step& step : program.steps) {
    StepKernels& bound =
        kernels.emplace_back(StepKernels{BindKernel(*step.op, step.call, backend), {}});
    OpCall call = step.call;
    bool first = false;
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const Value output = step.outputs[k];
      if (!output || program.info(output).kind != ValueKind::kGradient) continue;
      if (!written.insert(output.id).second) continue;
      call.accumulate[k] = false;
      first = true;
    }
    if (first) bound.replace = BindKernel(*step.op, call, backend);
  }
  return kernels;
}

std::vector<size_t> WorkspacesOf(const std::vector<StepKernels>& kernels) {
  std::vector<size_t> bytes;
  for (const StepKernels& kernel : kernels) bytes.push_back(kernel.workspace_bytes());
  return bytes;
}

}  // namespace

Executable::Executable(Program program, Backend backend, const Arenas& arenas,
                       TransientMemory memory)
    : program_(std::move(program)), backend_(backend) {
  std::vector<StepKernels> kernels = BindSteps(program_, backend);
  plan_ = PlanMemory(program_, WorkspacesOf(kernels),
                     backend == Backend::kReference ? &BytesOnReference : &BytesOnCpu,
                     memory == TransientMemory::kPainted ? Buffer::kAlignment : 0);
  for (StepKernels& kernel : kernels) steps_.push_back({std::move(kernel), {}, {}, nullptr});
  AssignMemory(arenas);
  if (memory == TransientMemory::kPainted) PaintTransients();
}

void Executable::PaintTransients() {
  std::vector<size_t> used;
  for (const Block& block : plan_.blocks) {
    used.push_back(block.value ? View(block.value).type.bytes()
                               : steps_[block.first].kernels.workspace_bytes());
  }
  painter_ = std::make_unique<Painter>(plan_, used, transients_.data());
}

void Executable::AssignMemory(const Arenas& arenas) {
  address_.assign(program_.values.size(), nullptr);
  transients_ = Buffer(plan_.arena_bytes, "activations");
  for (const Block& block : plan_.blocks) {
    if (block.value) {
      address_[block.value.id] = transients_.data() + block.offset;
    } else {
      steps_[block.first].workspace = transients_.data() + block.offset;
    }
  }
  size_t input_bytes = 0;
  for (const ValueInfo& info : program_.values) {
    if (info.kind == ValueKind::kInput || info.kind == ValueKind::kConstant) {
      input_bytes += AlignUp(BackendType(info.type, backend_).bytes());
    }
  }
  inputs_ = Buffer(input_bytes, "inputs");
  size_t next = 0;
  const size_t element = backend_ == Backend::kReference ? sizeof(double) : sizeof(float);
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const ValueInfo& info = program_.values[i];
    void* arena = info.kind == ValueKind::kParameter  ? arenas.parameters
                  : info.kind == ValueKind::kGradient ? arenas.gradients
                                                      : arenas.state;
    switch (info.kind) {
      case ValueKind::kTransient:
        break;
      case ValueKind::kInput:
      case ValueKind::kConstant:
        address_[i] = inputs_.data() + next;
        next += AlignUp(BackendType(info.type, backend_).bytes());
        if (info.kind == ValueKind::kConstant) Fill(View({static_cast<int>(i)}), info.constant);
        break;
      default:
        address_[i] = arena ? static_cast<std::byte*>(arena) + info.offset * element : nullptr;
    }
  }
  const auto address = [&](Value value) { return value ? address_[value.id] : nullptr; };
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Value v : program_.steps[i].inputs) steps_[i].inputs.push_back(address(v));
    for (const Value v : program_.steps[i].outputs) steps_[i].outputs.push_back(address(v));
    for (const auto* operands : {&program_.steps[i].inputs, &program_.steps[i].outputs}) {
      for (const Value v : *operands) {
        SYNTRA_CHECK(!v || address(v), "{} uses {}, whose arena is not there",
                     program_.steps[i].op->name, program_.info(v).name);
      }
    }
  }
}

TensorView Executable::View(Value value) const {
  return {address_[value.id], BackendType(program_.info(value).type, backend_)};
}

bool Executable::Has(std::string_view name) const {
  if (program_.outputs.contains(std::string(name))) return true;
  return std::ranges::any_of(program_.values, [&](const ValueInfo& info) {
    return info.kind == ValueKind::kInput && info.name == name;
  });
}

TensorView Executable::Tensor(std::string_view name) const {
  if (const auto it = program_.outputs.find(std::string(name)); it != program_.outputs.end()) {
    return View(it->second);
  }
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const ValueInfo& info = program_.values[i];
    if (info.kind == ValueKind::kInput && info.name == name) return View({static_cast<int>(i)});
  }
  Fail(ExitCode::kInternal, "the program has no tensor {}", name);
}

void Executable::SetInput(std::string_view name, std::span<const float> values) {
  const TensorView view = Tensor(name);
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == view.type.shape.size(), "input {}", name);
  if (view.type.dtype == DType::kF64) {
    std::ranges::copy(values, view.As<double>().begin());
  } else {
    std::ranges::copy(values, view.As<float>().begin());
  }
}

void Executable::SetInput(std::string_view name, std::span<const int32_t> values) {
  const TensorView view = Tensor(name);
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == view.type.shape.size(), "input {}", name);
  std::ranges::copy(values, view.As<int32_t>().begin());
}

double Executable::Scalar(std::string_view name) const {
  const TensorView view = Tensor(name);
  return view.type.dtype == DType::kF64 ? view.As<double>()[0] : view.As<float>()[0];
}

void Executable::RunStep(size_t i, Gradients gradients) {
  if (painter_) painter_->BeginStep(i);
  const BoundStep& step = steps_[i];
  const StepKernels& kernels = step.kernels;
  const bool replace = gradients == Gradients::kReplace && kernels.replace;
  (replace ? *kernels.replace : kernels.add).run({step.inputs, step.outputs, step.workspace});
  if (painter_) painter_->EndStep(i, program_);
}

void Executable::Run(Gradients gradients) {
  for (size_t i = 0; i < steps_.size(); ++i) RunStep(i, gradients);
}

void Executable::RunChecked() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    RunStep(i);
    const Step& step = program_.steps[i];
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      if (!step.outputs[k] || AllFinite(View(step.outputs[k]))) continue;
      std::string inputs;
      for (const Value input : step.inputs) {
        if (input && !program_.info(input).name.empty()) inputs += ' ' + program_.info(input).name;
      }
      Fail(ExitCode::kDiverged, "step {} of {}, {}{}, makes a value that is not finite (output {})",
           i, steps_.size(), step.op->name, inputs.empty() ? "" : " of" + inputs, k);
    }
  }
}

void Executable::RunTimed(OpTimes& times) {
  using Clock = std::chrono::steady_clock;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto start = Clock::now();
    RunStep(i);
    times[program_.steps[i].op->name] +=
        std::chrono::duration<double>(Clock::now() - start).count();
  }
}

MemoryPlan PlanOnCpu(const Program& program) {
  return PlanMemory(program, WorkspacesOf(BindSteps(program, Backend::kCpu)), &BytesOnCpu);
}

}  // namespace syntra
