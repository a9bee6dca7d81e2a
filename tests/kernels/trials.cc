// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/trials.h"

#include <algorithm>
#include <set>

#include "tests/kernels/large_cases.h"
#include "tests/kernels/tape.h"

namespace syntra {
namespace {

const std::string kGradSuffix = "_grad";
const std::string kOfPrefix = "of_";

// Records a call and its gradient, with all gradients wanted.
CallGradient Differentiate(Tape& tape, const Op& op, const OpCase& test, uint64_t seed) {
  std::vector<Value> inputs, cotangents;
  std::set<int> wanted;
  for (CaseTensor& input : CaseInputs(op, test, seed)) {
    if (!input.numbers.empty()) wanted.insert(static_cast<int>(inputs.size()));
    inputs.push_back(tape.Add(std::move(input)));
  }
  const std::vector<Value> outputs = tape.Record(op.name, test.attributes, inputs);
  CaseTensor cotangent = MakeTensor(tape.TypeOf(outputs[0]));
  FillNormal(cotangent, seed + 200);
  cotangents.resize(outputs.size());
  cotangents[0] = tape.Add(std::move(cotangent));
  CallGradient rule(tape, test.attributes, inputs, outputs, cotangents, wanted);
  op.gradient(rule);
  return rule;
}

// A call of `sweep.op` as its forward op's gradient rule makes it.
Trial GradientTrial(const SweepCase& sweep, uint64_t seed) {
  const std::string forward_name = sweep.op.substr(0, sweep.op.size() - kGradSuffix.size());
  const OpCase test = FindAnyCase({forward_name, sweep.name.substr(kOfPrefix.size())});
  Tape tape;
  Differentiate(tape, GetOp(forward_name), test, seed);
  const auto call = std::ranges::find(tape.calls(), sweep.op, &Tape::RecordedCall::op);
  SYNTRA_CHECK(call != tape.calls().end(), "the gradient of {} is not {}", forward_name, sweep.op);
  OpCase gradient{sweep.name, call->attributes, {}, {}};
  Trial trial{GetOp(sweep.op), {}, {}, {}};
  for (Value input : call->inputs) {
    trial.inputs.push_back(input ? tape.At(input) : MakeTensor({DType::kNone, {}}));
    CaseTensor& tensor = trial.inputs.back();
    for (double& number : tensor.numbers) number = Round(number, tensor.type.dtype);
    gradient.inputs.push_back(tensor.type);
  }
  trial.call = CaseCall(trial.op, gradient);
  trial.outputs = CaseOutputs(trial.op, gradient, seed);
  return trial;
}

}  // namespace

std::vector<SweepCase> AllTrials() {
  std::vector<SweepCase> trials = AllCases();
  for (const LargeCase& large : LargeCases()) trials.push_back({large.op, large.test.name});
  const std::vector<SweepCase> with_inputs = trials;
  const std::vector<std::string> names = OpNames();
  for (const SweepCase& forward : with_inputs) {
    const std::string name = forward.op + kGradSuffix;
    if (!std::ranges::count(names, name) || GetOp(name).cases != nullptr) continue;
    if (!Decodes(forward.op, FindAnyCase(forward))) {
      trials.push_back({name, kOfPrefix + forward.name});
    }
  }
  return trials;
}

Trial MakeTrial(const SweepCase& sweep, uint64_t seed) {
  const Op& op = GetOp(sweep.op);
  if (op.cases == nullptr) return GradientTrial(sweep, seed);
  const OpCase test = FindAnyCase(sweep);
  return {op, CaseCall(op, test), CaseInputs(op, test, seed), CaseOutputs(op, test, seed)};
}

std::set<std::string> ContributedOps() {
  std::set<std::string> all;
  for (const SweepCase& sweep : AllCases()) {
    const Op& op = GetOp(sweep.op);
    const OpCase test = FindAnyCase(sweep);
    if (op.gradient == nullptr || Decodes(op.name, test)) continue;
    Tape tape;
    all.merge(std::set(Differentiate(tape, op, test, /*seed=*/0).contributed()));
  }
  return all;
}

}  // namespace syntra
