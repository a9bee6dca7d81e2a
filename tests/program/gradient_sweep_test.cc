// SPDX-License-Identifier: Apache-2.0
// Compares every gradient rule with central differences of the double-precision reference, for
// every case of every differentiable op, every input, and every set of outputs that the loss may
// depend on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "program/numbers.h"
#include "tests/kernels/large_cases.h"
#include "tests/kernels/tape.h"

namespace syntra {
namespace {

constexpr uint64_t kSeed = 40;
constexpr double kStep = 3e-5;
constexpr double kTolerance = 1e-6;  // relative to the gradient's norm
constexpr int kDirections = 8;

// Inputs and outputs without a gradient, by contract: kernels/README.md.
const std::map<std::string, std::set<int>> kConstantInputs = {{"linear_cross_entropy", {3}}};
const std::map<std::string, std::set<int>> kReportedOutputs = {{"add_norm", {2}},
                                                               {"attention", {1}},
                                                               {"layer_norm", {1, 2}},
                                                               {"linear_cross_entropy", {1, 2}}};

bool Contains(const std::map<std::string, std::set<int>>& table, const std::string& op, int i) {
  const auto entry = table.find(op);
  return entry != table.end() && entry->second.contains(i);
}

// One op call with a scalar loss: the sum of its outputs times random cotangents.
class Probe {
 public:
  explicit Probe(const SweepCase& sweep)
      : op_(GetOp(sweep.op)),
        case_(FindCase(sweep)),
        inputs_(CaseInputs(op_, case_, kSeed)),
        cotangents_(CaseOutputs(op_, case_, kSeed)) {
    for (size_t i = 0; i < cotangents_.size(); ++i) FillNormal(cotangents_[i], kSeed + 200 + i);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool constant = Contains(kConstantInputs, op_.name, static_cast<int>(i));
      if (IsFloat(inputs_[i].type.dtype) && !constant) wanted_.insert(static_cast<int>(i));
    }
  }

  // Sets of outputs, as bits, that a loss may depend on.
  std::vector<uint32_t> LossSets() const {
    uint32_t possible = 0;
    for (size_t i = 0; i < cotangents_.size(); ++i) {
      const bool reported = Contains(kReportedOutputs, op_.name, static_cast<int>(i));
      if (IsFloat(cotangents_[i].type.dtype) && !reported) possible |= 1u << i;
    }
    std::vector<uint32_t> sets;
    for (uint32_t set = 1; set <= possible; ++set) {
      if ((set & ~possible) == 0) sets.push_back(set);
    }
    return sets;
  }

  const std::set<int>& wanted() const { return wanted_; }
  size_t size(int input) const { return inputs_[input].numbers.size(); }

  struct Result {
    std::map<int, std::vector<double>> gradients;
    int contributions;
  };

  Result Differentiate(uint32_t loss_set, const std::set<int>& wanted, int flipped = -1) const {
    Tape tape;
    std::vector<Value> inputs, cotangents;
    for (const CaseTensor& input : inputs_) inputs.push_back(tape.Add(input));
    const std::vector<Value> outputs = tape.Record(op_.name, case_.attributes, inputs);
    for (size_t i = 0; i < cotangents_.size(); ++i) {
      cotangents.push_back(loss_set >> i & 1 ? tape.Add(cotangents_[i]) : Value{});
    }
    CallGradient rule(tape, case_.attributes, inputs, outputs, cotangents, wanted);
    rule.Flip(flipped);
    op_.gradient(rule);
    Result result{rule.gradients(), rule.contributions()};
    for (int i : wanted) result.gradients[i].resize(size(i), 0.0);
    return result;
  }

  // The derivative of the loss along `direction` of one input, by a stencil of fourth order.
  double Slope(uint32_t loss_set, int input, const std::vector<double>& direction) const {
    std::vector<CaseTensor> inputs = inputs_;
    const auto loss = [&](double step) {
      for (size_t k = 0; k < direction.size(); ++k) {
        inputs[input].numbers[k] = inputs_[input].numbers[k] + step * direction[k];
      }
      OpCall call = CaseCall(op_, case_);
      std::vector<CaseTensor> outputs;
      for (const TensorType& type : call.outputs) outputs.push_back(MakeTensor(type));
      op_.reference(call, Views(inputs), Views(outputs));
      double sum = 0.0;
      for (size_t i = 0; i < outputs.size(); ++i) {
        for (size_t k = 0; (loss_set >> i & 1) && k < outputs[i].numbers.size(); ++k) {
          sum += outputs[i].numbers[k] * cotangents_[i].numbers[k];
        }
      }
      return sum;
    };
    return (8.0 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) /
           (12.0 * kStep);
  }

 private:
  const Op& op_;
  OpCase case_;
  std::vector<CaseTensor> inputs_, cotangents_;
  std::set<int> wanted_;
};

// The largest disagreement with central differences of any input, along random directions, relative
// to the norm of that input's gradient. An error e of a gradient shows as a normal deviate times
// |e|.
double Disagreement(const Probe& probe, uint32_t loss_set,
                    const std::map<int, std::vector<double>>& gradients) {
  double worst = 0.0;
  for (const auto& [input, gradient] : gradients) {
    for (int n = 0; n < kDirections; ++n) {
      CaseTensor direction =
          MakeTensor({DType::kF32, Shape{static_cast<int64_t>(probe.size(input))}});
      FillNormal(direction, kSeed + 1000 + n);
      const double slope = probe.Slope(loss_set, input, direction.numbers);
      double predicted = 0.0;
      for (size_t k = 0; k < gradient.size(); ++k) predicted += gradient[k] * direction.numbers[k];
      worst = std::max(worst, std::abs(slope - predicted) / std::max(Norm(gradient), 1e-3));
    }
  }
  return worst;
}

std::vector<SweepCase> DifferentiableCases() {
  std::vector<SweepCase> cases;
  for (const SweepCase& sweep : AllCases()) {
    if (GetOp(sweep.op).gradient && !Decodes(sweep.op, FindCase(sweep))) cases.push_back(sweep);
  }
  return cases;
}

class GradientSweep : public testing::TestWithParam<SweepCase> {};

TEST_P(GradientSweep, AgreesWithCentralDifferences) {
  const Probe probe(GetParam());
  for (uint32_t loss_set : probe.LossSets()) {
    const auto result = probe.Differentiate(loss_set, probe.wanted());
    EXPECT_GT(result.contributions, 0);
    EXPECT_LT(Disagreement(probe, loss_set, result.gradients), kTolerance)
        << "for the outputs " << loss_set;
  }
}

TEST_P(GradientSweep, IsTheSameForOneInputAlone) {
  const Probe probe(GetParam());
  for (uint32_t loss_set : probe.LossSets()) {
    auto all = probe.Differentiate(loss_set, probe.wanted()).gradients;
    for (int input : probe.wanted()) {
      auto alone = probe.Differentiate(loss_set, {input}).gradients;
      ASSERT_EQ(alone.size(), 1u);
      EXPECT_EQ(alone[input], all[input]) << "of input " << input;
    }
  }
}

// The sweep would notice a mistake: one contribution of the wrong sign.
TEST_P(GradientSweep, NoticesAFlippedSign) {
  const Probe probe(GetParam());
  const uint32_t loss_set = probe.LossSets().back();
  const int contributions = probe.Differentiate(loss_set, probe.wanted()).contributions;
  for (int flipped = 0; flipped < contributions; ++flipped) {
    const auto wrong = probe.Differentiate(loss_set, probe.wanted(), flipped);
    EXPECT_GT(Disagreement(probe, loss_set, wrong.gradients), 1e3 * kTolerance)
        << "with contribution " << flipped << " flipped; a case must not make it zero";
  }
}

std::string TestName(const testing::TestParamInfo<SweepCase>& info) {
  return info.param.op + "_" + info.param.name;
}

INSTANTIATE_TEST_SUITE_P(AllOps, GradientSweep, testing::ValuesIn(DifferentiableCases()), TestName);

}  // namespace
}  // namespace syntra
