// SPDX-License-Identifier: Apache-2.0
// An op: shape inference, a double-precision reference, a gradient rule and test cases. Backends
// register their fast kernels separately (bound_kernel.h). Ops do not depend on models,
// configurations or ranks.
//
// kernels/README.md lists the steps to add one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/op_call.h"
#include "kernels/reference_tensor.h"

namespace syntra {

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
  // Returns one value per output. An input may be absent if the op allows it.
  virtual std::vector<Value> Record(std::string_view op, Attributes attributes,
                                    std::vector<Value> inputs) = 0;
  virtual const TensorType& TypeOf(Value value) const = 0;
};

// The interface of a gradient rule: the call that it differentiates, and functions that record the
// gradients.
class GradientRule {
 public:
  virtual ~GradientRule() = default;
  virtual Recorder& recorder() = 0;
  virtual const Attributes& attributes() const = 0;
  virtual int inputs() const = 0;  // how many
  // Each of these may record the value again, if it was not kept.
  virtual Value input(int i) = 0;
  virtual Value output(int i) = 0;
  // Absent if the objective does not depend on the output.
  virtual Value output_gradient(int i) const = 0;
  // Whether the gradient of input i is needed.
  virtual bool wants(int i) const = 0;
  // Records `op`. Its output k is added to the gradient of input targets[k], or skipped if that
  // gradient is not needed. Contributions of several ops add up. If the op has more outputs than
  // there are targets, the remaining ones are the outputs of the call itself. The call is then
  // removed from the program, unless something reads its outputs earlier.
  virtual void Contribute(std::string_view op, Attributes attributes, std::vector<Value> inputs,
                          std::vector<int> targets) = 0;
  // Adds `gradient` to the gradient of input i.
  virtual void Pass(int i, Value gradient) = 0;

  // The mask of the call whose result is input i (Op::masks), if nothing else reads that result;
  // else absent. A rule that takes it must contribute a gradient that is 0 where the mask has no
  // bit; that call then passes the gradient on unchanged.
  virtual Value TakeMask(int /*i*/) { return {}; }
  // Whether the mask of the call itself was taken.
  virtual bool mask_taken() const { return false; }
};

// Fills an integer input of a test case.
using FillIntegers = std::function<void(int input, std::span<int32_t> values)>;
// Changes the numbers of a floating-point input, which come from the standard normal distribution.
using FillNumbers = std::function<void(int input, std::span<double> values)>;

// A test case: the sweeps run the call on every backend and differentiate it.
struct OpCase {
  std::string name;
  Attributes attributes;
  std::vector<TensorType> inputs;
  FillIntegers fill_integers;
  FillNumbers fill_numbers = {};
};

// Operands of a call: bit i is input i, or output i.
struct OperandSet {
  uint64_t inputs = 0, outputs = 0;
};

// `count` operands of a call from `first` on, of its inputs or of its outputs.
struct OperandRange {
  bool of_outputs;
  size_t first, count;
};

struct Op {
  std::string name;
  std::vector<TensorType> (*infer)(const Attributes&, std::span<const TensorType> inputs);
  void (*reference)(const OpCall&, std::span<const ReferenceTensor> inputs,
                    std::span<const ReferenceTensor> outputs);
  void (*gradient)(GradientRule&) = nullptr;  // null: not differentiable
  std::vector<OpCase> (*cases)() = nullptr;
  double (*flops)(const OpCall&) = nullptr;  // a multiply-add counts 2; null: negligible
  // Bytes read and written. Null: every operand once, and what is updated or added to twice.
  double (*bytes)(const OpCall&) = nullptr;
  // The outputs are read before they are written, and are stored outside the program (optimizer
  // updates, caches).
  bool updates = false;
  // Output 0 has the elements of input 0 in the same order. If they are of the same type, it may
  // lie in its memory, and nothing is left to do.
  bool keeps_elements = false;
  // An element of output 0 depends on only that element of each input of its type and shape, so
  // output 0 may lie in the memory of such an input.
  bool elementwise = false;
  // Output 1 is a mask (kernels/bit_mask.h) of where gradients pass through output 0, as of a ReLU.
  bool masks = false;
  // Operands that may be columns of a wider matrix (TensorType::pitch), at multiples of eight of
  // its columns. Null: none.
  OperandSet (*takes_columns)(const OpCall&) = nullptr;
  // Operands that a call wants side by side, as columns of one matrix in their order. Either all of
  // them are, or none is. Null: there are none.
  OperandRange (*side_by_side)(const OpCall&) = nullptr;
  // The op of which one call replaces several calls of this one that have equal attributes and the
  // same input 0, or null. Its inputs are that input and then the others of each call; its outputs
  // are theirs. Null: calls are not joined.
  const char* (*joint)(const OpCall&) = nullptr;
};

// Throws Error(kInternal) for an unknown name.
const Op& GetOp(std::string_view name);

}  // namespace syntra
