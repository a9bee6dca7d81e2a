// SPDX-License-Identifier: Apache-2.0
// A program: the flat list of op calls that one training, evaluation or decoding step runs. It is
// recorded once for each shape; the builder then joins products and drops what nobody reads.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/parameters.h"
#include "kernels/op.h"

namespace syntra {

// Where a value lives. Parameters, gradients and state lie in flat f32 arenas that outlive the
// program; inputs and constants belong to the executable; transients share a planned arena.
enum class ValueKind { kInput, kConstant, kParameter, kGradient, kState, kTransient };

// The value of every element, or all elements.
using ConstantValue = std::variant<double, std::vector<float>, std::vector<int32_t>>;

struct ValueInfo {
  TensorType type;
  ValueKind kind = ValueKind::kTransient;
  std::string name;    // inputs, parameters, gradients, state
  int64_t offset = 0;  // parameters, gradients, state: elements from the start of the arena
  ConstantValue constant = 0.0;
};

// A call of an op on values of the program.
struct Instruction {
  const Op* op = nullptr;
  OpCall call;  // types
  std::vector<Value> inputs, outputs;

  // Of products, which alone count; a multiply-add counts 2.
  double flops() const { return op->flops ? op->flops(call) : 0; }
  // Whether this input, or output, may be columns of a wider matrix (Op::takes_columns).
  bool TakesColumns(size_t operand, bool is_output) const;
};

struct Program {
  std::deque<ValueInfo> values;  // references stay valid while more are recorded
  std::vector<Instruction> instructions;
  std::map<std::string, Value> outputs;  // named results, alive until the end of a run
  size_t backward_begin = 0;             // instructions before it are the forward half
  double flops = 0;                      // of all instructions, without what is recomputed
  double recomputed_flops = 0;           // of what the backward half computes again

  const ValueInfo& info(Value value) const { return values[value.id]; }
  bool IsParameter(Value value) const { return value && info(value).kind == ValueKind::kParameter; }
};

}  // namespace syntra
