// SPDX-License-Identifier: Apache-2.0
// An independent executor for tests. It runs one op call and its gradient rule immediately, with
// the references and all floats as doubles. It does not use src/program.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/case_data.h"

namespace syntra {

// Executes each op when it is recorded.
class Tape : public Recorder {
 public:
  struct RecordedCall {
    std::string op;
    Attributes attributes;
    std::vector<Value> inputs;
  };
  const std::vector<RecordedCall>& calls() const { return calls_; }

  Value Add(CaseTensor tensor) {
    if (!tensor.type.present()) return {};
    tensors_.push_back(std::move(tensor));
    return {static_cast<int>(tensors_.size()) - 1};
  }

  std::vector<Value> Record(std::string_view op, Attributes attributes,
                            std::vector<Value> inputs) override {
    return Record(op, attributes, inputs, [](size_t) { return true; });
  }

  // Computes only the outputs for which `wanted(output)` is true.
  template <typename Wanted>
  std::vector<Value> Record(std::string_view name, const Attributes& attributes,
                            const std::vector<Value>& inputs, const Wanted& wanted) {
    calls_.push_back({std::string(name), attributes, inputs});
    const Op& op = GetOp(name);
    OpCall call{attributes, {}, {}, {}};
    std::vector<ReferenceTensor> input_views;
    for (Value input : inputs) {
      input_views.push_back(input ? At(input).View() : ReferenceTensor{{DType::kNone, {}}, {}, {}});
      call.inputs.push_back(input_views.back().type);
    }
    call.outputs = op.infer(call.attributes, call.inputs);
    call.accumulate.assign(call.outputs.size(), false);
    std::vector<CaseTensor> outputs;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!wanted(i)) call.outputs[i] = {DType::kNone, {}};
      outputs.push_back(MakeTensor(call.outputs[i]));
    }
    op.reference(call, input_views, Views(outputs));
    std::vector<Value> values;
    for (CaseTensor& output : outputs) values.push_back(Add(std::move(output)));
    return values;
  }

  const TensorType& TypeOf(Value value) const override { return tensors_.at(value.id).type; }
  CaseTensor& At(Value value) { return tensors_.at(value.id); }

 private:
  std::vector<RecordedCall> calls_;
  std::deque<CaseTensor> tensors_;  // references to elements stay valid
};

// The GradientRule of one call on a tape. It adds up the gradients of the call's inputs.
class CallGradient : public GradientRule {
 public:
  // Cotangents: one per output, absent if the loss does not depend on the output.
  CallGradient(Tape& tape, Attributes attributes, std::vector<Value> inputs,
               std::vector<Value> outputs, std::vector<Value> cotangents, std::set<int> wanted)
      : tape_(tape),
        attributes_(std::move(attributes)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        cotangents_(std::move(cotangents)),
        wanted_(std::move(wanted)) {}

  Recorder& recorder() override { return tape_; }
  const Attributes& attributes() const override { return attributes_; }
  int inputs() const override { return static_cast<int>(inputs_.size()); }
  Value input(int i) override { return inputs_.at(i); }
  Value output(int i) override { return outputs_.at(i); }
  Value output_gradient(int i) const override { return cotangents_.at(i); }
  bool wants(int i) const override { return wanted_.contains(i); }

  void Contribute(std::string_view op, Attributes attributes, std::vector<Value> inputs,
                  std::vector<int> targets) override {
    const auto wanted = [&](size_t k) { return k < targets.size() && wants(targets[k]); };
    if (std::ranges::none_of(targets, [&](int target) { return wants(target); })) return;
    contributed_.emplace(op);
    const std::vector<Value> outputs = tape_.Record(op, attributes, inputs, wanted);
    SYNTRA_CHECK(
        outputs.size() == targets.size() || outputs.size() == targets.size() + outputs_.size(),
        "{} has {} results for {} targets", op, outputs.size(), targets.size());
    for (size_t k = 0; k < targets.size(); ++k) {
      if (wants(targets[k])) Pass(targets[k], outputs[k]);
    }
  }

  void Pass(int i, Value gradient) override {
    if (!wants(i)) return;
    const CaseTensor& contribution = tape_.At(gradient);
    SYNTRA_CHECK(contribution.type == tape_.TypeOf(inputs_[i]), "input {} is {}, its gradient {}",
                 i, ToString(tape_.TypeOf(inputs_[i])), ToString(contribution.type));
    std::vector<double>& sum = gradients_[i];
    sum.resize(contribution.numbers.size(), 0.0);
    const double sign = contributions_++ == flipped_ ? -1.0 : 1.0;
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += sign * contribution.numbers[k];
  }

  // Makes a deliberate mistake: the n-th contribution gets the wrong sign.
  void Flip(int contribution) { flipped_ = contribution; }

  int contributions() const { return contributions_; }
  // The ops whose results were added to gradients.
  const std::set<std::string>& contributed() const { return contributed_; }
  // Inputs without a contribution have no entry; their gradient is zero.
  const std::map<int, std::vector<double>>& gradients() const { return gradients_; }

 private:
  Tape& tape_;
  Attributes attributes_;
  std::vector<Value> inputs_, outputs_, cotangents_;
  std::set<int> wanted_;
  std::map<int, std::vector<double>> gradients_;
  std::set<std::string> contributed_;
  int contributions_ = 0, flipped_ = -1;
};

}  // namespace syntra
