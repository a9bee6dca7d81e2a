// SPDX-License-Identifier: Apache-2.0
// The operands of an op's test cases: drawn from Philox at fixed seeds, rounded to their types, the
// same for the kernel and for the reference.
#pragma once

#include <string>
#include <vector>

#include "kernels/op.h"

namespace syntra {

// One tensor of a case: floats as doubles that their type holds exactly.
struct CaseTensor {
  TensorType type;
  std::vector<double> numbers;
  std::vector<int32_t> integers;

  ReferenceTensor View() { return {type, numbers, integers}; }
};

// Views of all `tensors`, as references take them.
std::vector<ReferenceTensor> Views(std::vector<CaseTensor>& tensors);

// A zero tensor.
CaseTensor MakeTensor(const TensorType& type);

// Rounds `value` to an element type.
double Round(double value, DType dtype);

// Standard normal numbers, rounded to the tensor's type.
void FillNormal(CaseTensor& tensor, uint64_t seed);

// The inputs of a case. Hyperparameters of updates lie in (0, 1). Where an op multiplies in bf16,
// f32 operands hold bf16 values, so that rounding them changes nothing.
std::vector<CaseTensor> CaseInputs(const Op& op, const OpCase& test, uint64_t seed);

// What the outputs hold before the call: zeros, and positive numbers where the op updates them.
std::vector<CaseTensor> CaseOutputs(const Op& op, const OpCase& test, uint64_t seed);

// The call of a case with all its results wanted.
OpCall CaseCall(const Op& op, const OpCase& test);

// One case of one op, by names.
struct SweepCase {
  std::string op, name;
  friend std::ostream& operator<<(std::ostream& out, const SweepCase& sweep) {
    return out << sweep.op << "/" << sweep.name;
  }
};

// Every case of every op.
std::vector<SweepCase> AllCases();
OpCase FindCase(const SweepCase& sweep);

}  // namespace syntra
