// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a recorded program: one walk from the last instruction to the
// first, calling each op's own gradient rule. Instructions of a recompute region are recorded
// again, just before the gradient that needs them; random numbers are counters, so the second time
// gives the same bits.
#include <algorithm>
#include <set>

#include "program/builder.h"

namespace syntra {

// State of one walk, and the GradientRule of the instruction it stands at.
class ProgramBuilder::Tape final : public GradientRule {
 public:
  explicit Tape(ProgramBuilder& builder)
      : builder_(builder), forward_instructions_(builder.program_.instructions.size()) {
    FindDependence();
    FindProducers();
  }

  void Walk(std::span<const Value> losses) {
    for (const Value loss : losses) {
      SYNTRA_CHECK(depends_[loss.id], "a loss depends on no trainable parameter");
      SYNTRA_CHECK(!gradient_.contains(loss.id), "a loss is named twice");
      const Value one = builder_.FillConstant(builder_.TypeOf(loss), 1.0);
      gradient_[loss.id] = one;
      shared_.insert(one.id);  // where another loss depends on this one, a copy is added to
    }
    for (size_t i = forward_instructions_; i-- > 0;) {
      instruction_ = builder_.program_.instructions[i];
      if (AnyOutputGradient()) instruction_.op->gradient(*this);
      if (superseded_) Drop(i);
    }
  }

  Recorder& recorder() override { return builder_; }
  const Attributes& attributes() const override { return instruction_.call.attributes; }
  int inputs() const override { return static_cast<int>(instruction_.inputs.size()); }
  Value input(int i) override { return Resolve(instruction_.inputs[i]); }
  Value output(int i) override { return Resolve(instruction_.outputs[i]); }
  Value output_gradient(int i) const override {
    const Value value = instruction_.outputs[i];
    return value ? GradientValue(value) : Value{};
  }
  bool wants(int i) const override {
    const Value value = instruction_.inputs[i];
    return value && depends_[value.id];
  }

  void Contribute(std::string_view op, Attributes attributes, std::vector<Value> inputs,
                  std::vector<int> targets) override {
    std::vector<Contribution> results(targets.size());
    std::set<int> written;
    // Destinations first: making one may record a copy.
    for (size_t k = 0; k < targets.size(); ++k) {
      if (targets[k] < 0 || !wants(targets[k])) continue;
      Contribution& result = results[k];
      result.of = instruction_.inputs[targets[k]];
      result.is_repeated = !written.insert(result.of.id).second;
      result.accumulates = !result.is_repeated && HasGradient(result.of);
      if (result.accumulates) result.destination = OwnGradient(result.of);
    }
    if (written.empty()) return;
    Instruction made = builder_.MakeInstruction(op, std::move(attributes), std::move(inputs));
    for (size_t k = 0; k < targets.size(); ++k) {
      TensorType& type = made.call.outputs[k];
      Contribution& result = results[k];
      if (!result.of) {
        type.dtype = DType::kNone;
      } else if (!result.destination) {
        result.destination = builder_.NewValue({.type = type});
        if (!result.is_repeated) gradient_[result.of.id] = result.destination;
      } else {
        SYNTRA_CHECK(builder_.TypeOf(result.destination) == type,
                     "{}: gradient {} has type {}, not {}", op, k, ToString(type),
                     ToString(builder_.TypeOf(result.destination)));
      }
      made.call.accumulate[k] = result.accumulates;
      made.outputs.push_back(result.destination);
    }
    AddOwnOutputs(made);
    builder_.program_.instructions.push_back(std::move(made));
    builder_.region_of_instruction_.emplace_back();
    for (size_t k = 0; k < targets.size(); ++k) {
      if (results[k].is_repeated) Pass(targets[k], results[k].destination);
    }
  }

  void Pass(int i, Value gradient) override {
    if (!wants(i)) return;
    const Value of = instruction_.inputs[i];
    if (HasGradient(of)) {
      Contribute("copy", builder_.TypeLike(of), {gradient}, {i});
      return;
    }
    gradient_[of.id] = gradient;
    shared_.insert(gradient.id);
  }

  Value TakeMask(int i) override {
    const Value of = instruction_.inputs[i];
    const int producer = producer_[of.id];
    if (producer < 0 || readers_[of.id] > 1 || !wants(i)) return {};
    const Instruction& masked = builder_.program_.instructions[producer];
    if (!masked.op->masks || masked.outputs[0] != of) return {};
    taken_.insert(of.id);
    return Resolve(masked.outputs[1]);
  }
  bool mask_taken() const override { return taken_.contains(instruction_.outputs[0].id); }

 private:
  // A result of a gradient op, which is added to the gradient of an input of the instruction.
  struct Contribution {
    Value of;                  // the input; absent: the result is not wanted
    Value destination;         // its gradient or, if it is repeated, a transient
    bool accumulates = false;  // the destination has a value that the op adds to
    bool is_repeated = false;  // an earlier result is for the same input: added afterwards
  };

  // A gradient op may also compute the outputs of the instruction that it differentiates; they
  // follow the outputs that have targets. The instruction is then dropped, unless the forward half
  // reads its outputs.
  void AddOwnOutputs(Instruction& made) {
    const size_t own = made.call.outputs.size() - made.outputs.size();
    if (own == 0) return;
    SYNTRA_CHECK(own == instruction_.outputs.size(), "targets of {}", made.op->name);
    superseded_ = std::ranges::none_of(
        instruction_.outputs, [&](Value value) { return value && readers_[value.id] > 0; });
    for (const Value output : instruction_.outputs) {
      if (!superseded_) made.call.outputs[made.outputs.size()].dtype = DType::kNone;
      made.outputs.push_back(superseded_ ? output : Value{});
    }
  }

  void Drop(size_t i) {
    builder_.RemoveInstructions({i});
    --builder_.program_.backward_begin;
    superseded_ = false;
  }

  // depends_[v]: whether v is a function of a trainable parameter.
  void FindDependence() {
    depends_ = builder_.trainable_;
    for (const Instruction& instruction : builder_.program_.instructions) {
      bool any = false;
      for (const Value input : instruction.inputs) any |= input && depends_[input.id];
      if (!any || !instruction.op->gradient) continue;
      for (const Value output : instruction.outputs) {
        if (output) depends_[output.id] = true;
      }
    }
  }

  // A value of a recompute region is kept if an instruction outside the region reads it.
  void FindProducers() {
    const auto& instructions = builder_.program_.instructions;
    producer_.assign(builder_.program_.values.size(), -1);
    kept_.assign(builder_.program_.values.size(), false);
    readers_.assign(builder_.program_.values.size(), 0);
    for (size_t i = 0; i < instructions.size(); ++i) {
      for (const Value output : instructions[i].outputs) {
        if (output) producer_[output.id] = static_cast<int>(i);
      }
      for (const Value input : instructions[i].inputs) {
        if (input) ++readers_[input.id];
        if (!input || producer_[input.id] < 0) continue;
        const RegionMark& region = builder_.region_of_instruction_[producer_[input.id]];
        if (!region.recomputed || region != builder_.region_of_instruction_[i]) {
          kept_[input.id] = true;
        }
      }
    }
    for (const auto& [name, value] : builder_.program_.outputs) kept_[value.id] = true;
  }

  // The value itself, or its second computation if it was not kept.
  Value Resolve(Value value) {
    if (!value || value.id >= static_cast<int>(producer_.size())) return value;
    const int producer = producer_[value.id];
    if (producer < 0 || kept_[value.id] || !builder_.region_of_instruction_[producer].recomputed) {
      return value;
    }
    if (const auto it = again_.find(value.id); it != again_.end()) return it->second;
    // Copy: recording below may move the vector of instructions.
    const Instruction original = builder_.program_.instructions[producer];
    std::vector<Value> inputs;
    for (const Value input : original.inputs) inputs.push_back(Resolve(input));
    const std::vector<Value> outputs =
        builder_.Record(original.op->name, original.call.attributes, inputs);
    builder_.program_.recomputed_flops += original.flops();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]) again_[original.outputs[i].id] = outputs[i];
    }
    return again_.at(value.id);
  }

  Value GradientValue(Value value) const {
    const auto it = gradient_.find(value.id);
    return it == gradient_.end() ? Value{} : it->second;
  }

  // Whether there is a gradient of `of` that others must be added to.
  bool HasGradient(Value of) const {
    return builder_.gradient_slot_[of.id] >= 0 || gradient_.contains(of.id);
  }

  bool AnyOutputGradient() const {
    return std::ranges::any_of(instruction_.outputs,
                               [&](Value output) { return output && GradientValue(output); });
  }

  // The gradient of `of` as a tensor that may be added to: the parameter's slot, or a transient
  // that no other value's gradient shares.
  Value OwnGradient(Value of) {
    if (const int slot = builder_.gradient_slot_[of.id]; slot >= 0) return {slot};
    Value& gradient = gradient_.at(of.id);
    if (!shared_.contains(gradient.id)) return gradient;
    return gradient = RecordOne(builder_, "copy", builder_.TypeLike(gradient), {gradient});
  }

  ProgramBuilder& builder_;
  const size_t forward_instructions_;
  Instruction instruction_;  // a copy: recording moves the vector of instructions
  bool superseded_ = false;  // the instruction's outputs come from its gradient op
  std::vector<bool> depends_, kept_;
  std::vector<int> readers_;  // how many forward instructions read a value
  std::vector<int> producer_;
  std::set<int> taken_;                      // results whose mask their reader has taken
  std::unordered_map<int, Value> gradient_;  // by forward value
  std::set<int> shared_;                     // gradients that several values may have
  std::unordered_map<int, Value> again_;     // what was recorded again, by forward value
};

void ProgramBuilder::Differentiate(std::span<const Value> losses) {
  SYNTRA_CHECK(program_.backward_begin == 0, "differentiated twice");
  for (const Value loss : losses) {
    SYNTRA_CHECK(TypeOf(loss) == (TensorType{DType::kF32, {1}}), "a loss is f32[1]");
  }
  EndForwardHalf();
  Tape(*this).Walk(losses);
}

}  // namespace syntra
