// SPDX-License-Identifier: Apache-2.0
// What an op is: shape inference, a double-precision reference, a gradient rule and test cases.
// Fast kernels are registered beside it, per backend. Ops know nothing of models, configurations or
// ranks.
//
// To add an op: kernels/ops/<op>.cc defines `Op op_<op>()`, one line in kernels/ops.def; a CPU
// kernel is kernels/cpu/<op>.cc defining `std::optional<BoundKernel> cpu_<op>(const OpCall&)` and
// one line in kernels/cpu.def. The sweeps in tests/kernels then cover it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "kernels/attributes.h"

namespace syntra {

// One use of an op: everything known before it runs.
struct OpCall {
  Attributes attributes;
  std::vector<TensorType> inputs;   // kNone: an optional operand that is absent
  std::vector<TensorType> outputs;  // kNone: a result that nobody needs
  std::vector<bool> accumulate;     // per output: add to the value that is there
};

// A tensor on the reference backend: floating-point types are held as doubles.
struct ReferenceTensor {
  TensorType type;
  std::span<double> numbers;    // floating-point types
  std::span<int32_t> integers;  // kI32

  bool present() const { return type.present(); }
  int64_t dim(int i) const { return type.shape[i]; }
};

// A tensor in a program that is being recorded.
struct Value {
  int id = -1;
  explicit operator bool() const { return id >= 0; }
  friend bool operator==(Value, Value) = default;
};

// Records op calls. Implemented by src/program.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Returns one value per output. Inputs may be absent where the op says so.
  virtual std::vector<Value> Record(std::string_view op, Attributes attributes,
                                    std::vector<Value> inputs) = 0;
  virtual const TensorType& TypeOf(Value value) const = 0;
};

// What a gradient rule sees of the call it differentiates, and how it says what the gradients are.
class GradientRule {
 public:
  virtual ~GradientRule() = default;
  virtual Recorder& recorder() = 0;
  virtual const Attributes& attributes() const = 0;
  virtual Value input(int i) const = 0;
  virtual Value output(int i) const = 0;
  // Absent when nothing that counts depends on the output.
  virtual Value output_gradient(int i) const = 0;
  // Whether the gradient of input i is wanted.
  virtual bool wants(int i) const = 0;
  // Records `op`; its output k is a contribution to the gradient of input targets[k] (skipped if
  // that is not wanted). Contributions of several ops add up. An op with more outputs than targets
  // gives this call's own outputs after them: the call itself is then dropped from the program,
  // unless something reads its outputs before that.
  virtual void Contribute(std::string_view op, Attributes attributes, std::vector<Value> inputs,
                          std::vector<int> targets) = 0;
  // `gradient` itself is a contribution to the gradient of input i.
  virtual void Pass(int i, Value gradient) = 0;
};

// Draws the contents of an integer input of a test case; floats are standard normal.
using FillIntegers = std::function<void(int input, std::span<int32_t> values)>;

// One call that the sweeps run on every backend and differentiate.
struct OpCase {
  std::string name;
  Attributes attributes;
  std::vector<TensorType> inputs;
  FillIntegers fill_integers;
};

struct Op {
  std::string name;
  std::vector<TensorType> (*infer)(const Attributes&, std::span<const TensorType> inputs);
  void (*reference)(const OpCall&, std::span<const ReferenceTensor> inputs,
                    std::span<const ReferenceTensor> outputs);
  void (*gradient)(GradientRule&) = nullptr;  // null: not differentiable
  std::vector<OpCase> (*cases)() = nullptr;
  double (*flops)(const OpCall&) = nullptr;  // multiply-adds count 2; null: not worth counting
  // Outputs are read before they are written and live outside the program (optimizer updates,
  // caches).
  bool updates = false;
};

// Throws Error(kInternal) for an unknown name.
const Op& GetOp(std::string_view name);
std::vector<std::string> OpNames();

// An op call made ready to run: primitives created, sizes resolved. Running allocates nothing.
struct KernelArguments {
  std::span<void*const> inputs, outputs;  // null: absent
  std::byte* workspace;                   // 64-byte aligned
  void* stream = nullptr;                 // of a GPU: what orders the work; `run` only enqueues
};

struct BoundKernel {
  std::function<void(const KernelArguments&)> run;
  size_t workspace_bytes = 0;
  // Whether `run` honours OpCall::accumulate; otherwise the caller adds afterwards.
  bool accumulates = false;
};

// nullopt: there is no CPU kernel for this call; the reference serves instead.
std::optional<BoundKernel> BindCpuKernel(const Op& op, const OpCall& call);

// nullopt: there is no CUDA kernel for this call, and nothing serves instead. Operands and
// workspace lie in the GPU's memory.
std::optional<BoundKernel> BindCudaKernel(const Op& op, const OpCall& call);

// One kernel for several calls of one op; see Backend::BindMultiTensor.
std::optional<BoundKernel> BindCudaMultiTensor(const Op& op, std::span<const OpCall> calls);

// The reference as a kernel over host tensors of the call's own types (converted through doubles).
BoundKernel BindReferenceOnHost(const Op& op, const OpCall& call);

}  // namespace syntra
