// SPDX-License-Identifier: Apache-2.0
// The operands of an op's test cases. They are drawn from Philox with fixed seeds and rounded to
// their types. The kernel and the reference get the same values.
#pragma once

#include <string>
#include <vector>

#include "kernels/op.h"

namespace syntra {

// A tensor of a case. Floats are doubles that the tensor's type can represent exactly.
struct CaseTensor {
  TensorType type;
  std::vector<double> numbers;
  std::vector<int32_t> integers;

  ReferenceTensor View() { return {type, numbers, integers}; }
};

// Views of all `tensors`, for calls of references.
std::vector<ReferenceTensor> Views(std::vector<CaseTensor>& tensors);

// A zero tensor.
CaseTensor MakeTensor(const TensorType& type);

// Rounds `value` to an element type.
double Round(double value, DType dtype);

// Fills the tensor with standard normal numbers, rounded to its type.
void FillNormal(CaseTensor& tensor, uint64_t seed);

// The inputs of a case. Hyperparameters of updates are in (0, 1). If an op multiplies in bf16, f32
// operands have values that bf16 can represent, so that rounding does not change them.
std::vector<CaseTensor> CaseInputs(const Op& op, const OpCase& test, uint64_t seed);

// The outputs before the call: zeros, or positive numbers if the op updates them.
std::vector<CaseTensor> CaseOutputs(const Op& op, const OpCase& test, uint64_t seed);

// The call of a case, with all outputs.
OpCall CaseCall(const Op& op, const OpCase& test);

// The names of an op and of one of its cases.
struct SweepCase {
  std::string op, name;
  friend std::ostream& operator<<(std::ostream& out, const SweepCase& sweep) {
    return out << sweep.op << "/" << sweep.name;
  }
};

// The names of all ops.
std::vector<std::string> OpNames();

// Every case of every op.
std::vector<SweepCase> AllCases();
OpCase FindCase(const SweepCase& sweep);

}  // namespace syntra
