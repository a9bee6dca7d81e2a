// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/case_data.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

constexpr int64_t kHyperExtent = 8;  // more elements are a tensor, not hyperparameters

// Ops whose kernels round the f32 operands of products to bf16.
bool Multiplies(const std::string& op) {
  for (const char* prefix : {"matmul", "masked_matmul", "joint_matmul", "batch_matmul",
                             "head_matmul", "shared_matmul", "linear_", "attention"}) {
    if (op.starts_with(prefix)) return true;
  }
  return false;
}

bool HasBf16(const Op& op, const OpCase& test) {
  const auto is_bf16 = [](const TensorType& type) { return type.dtype == DType::kBF16; };
  return std::ranges::any_of(test.inputs, is_bf16) ||
         std::ranges::any_of(op.infer(test.attributes, test.inputs), is_bf16);
}

void FillWords(CaseTensor& tensor, uint64_t seed) {
  for (size_t i = 0; i < tensor.integers.size(); ++i) {
    tensor.integers[i] = static_cast<int32_t>(RandomAt(DeriveKey(seed, "words"), i)[0]);
  }
}

}  // namespace

std::vector<ReferenceTensor> Views(std::vector<CaseTensor>& tensors) {
  std::vector<ReferenceTensor> views;
  for (CaseTensor& tensor : tensors) views.push_back(tensor.View());
  return views;
}

CaseTensor MakeTensor(const TensorType& type) {
  CaseTensor tensor{type, {}, {}};
  if (IsFloat(type.dtype)) tensor.numbers.assign(type.shape.size(), 0.0);
  if (type.dtype == DType::kI32) tensor.integers.assign(type.shape.size(), 0);
  return tensor;
}

double Round(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  return dtype == DType::kBF16 ? ToFloat(ToBFloat16(single)) : single;
}

namespace {

// A standard normal number from two words (Box-Muller).
float NormalFromBits(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * 0x1p-32));
  return static_cast<float>(radius * std::cos(2.0 * M_PI * static_cast<double>(b) * 0x1p-32));
}

}  // namespace

void FillNormal(CaseTensor& tensor, uint64_t seed) {
  for (size_t i = 0; i < tensor.numbers.size(); ++i) {
    const RandomBits bits = RandomAt(DeriveKey(seed, "normal"), i);
    tensor.numbers[i] = Round(NormalFromBits(bits[0], bits[1]), tensor.type.dtype);
  }
}

std::vector<CaseTensor> CaseInputs(const Op& op, const OpCase& test, uint64_t seed) {
  const bool rounds = Multiplies(op.name) && HasBf16(op, test);
  std::vector<CaseTensor> inputs;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    CaseTensor& tensor = inputs.emplace_back(MakeTensor(test.inputs[i]));
    FillNormal(tensor, seed + i);
    if (test.fill_numbers) {
      test.fill_numbers(static_cast<int>(i), tensor.numbers);
      for (double& number : tensor.numbers) number = Round(number, tensor.type.dtype);
    }
    if (tensor.type.dtype == DType::kI32) {
      FillWords(tensor, seed + i);
      if (test.fill_integers) test.fill_integers(static_cast<int>(i), tensor.integers);
    }
    const bool hyper = op.updates && tensor.type.shape.rank() == 1 &&
                       tensor.type.shape.size() < kHyperExtent && i > 0;
    for (double& number : tensor.numbers) {
      if (hyper) number = Round(0.5 + 0.4 * std::tanh(number), DType::kF32);
      if (rounds) number = Round(number, DType::kBF16);
    }
  }
  return inputs;
}

std::vector<CaseTensor> CaseOutputs(const Op& op, const OpCase& test, uint64_t seed) {
  std::vector<CaseTensor> outputs;
  for (const TensorType& type : op.infer(test.attributes, test.inputs)) {
    CaseTensor& tensor = outputs.emplace_back(MakeTensor(type));
    if (!op.updates) continue;
    FillNormal(tensor, seed + 100 + outputs.size());
    for (double& number : tensor.numbers) number = Round(std::abs(number) + 0.05, type.dtype);
  }
  return outputs;
}

OpCall CaseCall(const Op& op, const OpCase& test) {
  OpCall call{test.attributes, test.inputs, op.infer(test.attributes, test.inputs), {}};
  call.accumulate.assign(call.outputs.size(), false);
  return call;
}

std::vector<std::string> OpNames() {
  return {
#define SYNTRA_OP(name) #name,
#include "kernels/ops.def"
#undef SYNTRA_OP
  };
}

std::vector<SweepCase> AllCases() {
  std::vector<SweepCase> all;
  for (const std::string& name : OpNames()) {
    const Op& op = GetOp(name);
    if (!op.cases) continue;
    for (const OpCase& test : op.cases()) all.push_back({name, test.name});
  }
  return all;
}

OpCase FindCase(const SweepCase& sweep) {
  for (OpCase& test : GetOp(sweep.op).cases()) {
    if (test.name == sweep.name) return test;
  }
  Fail(ExitCode::kInternal, "no case {} of {}", sweep.name, sweep.op);
}

}  // namespace syntra
