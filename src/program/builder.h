// SPDX-License-Identifier: Apache-2.0
// Records a program and differentiates it.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <unordered_map>

#include "program/program.h"

namespace syntra {

class ProgramBuilder final : public Recorder {
 public:
  // Which calls are joined into one (join.cc): only those of the same region, or also those of
  // several regions. Results of calls joined across regions are always kept, never computed again.
  enum class Join { kWithinRegions, kAcrossRegions };
  explicit ProgramBuilder(Join join = Join::kWithinRegions) : join_(join) {}

  // A tensor that the caller writes before each run.
  Value Input(const std::string& name, TensorType type);
  // A tensor of constants, row-major: sinusoids, DFT matrices, layouts of blocks. It goes to the
  // backend's memory once, when the program is bound; equal tensors of a program are one.
  template <typename T>
  Value Constant(const Shape& shape, std::vector<T> values) {
    SYNTRA_CHECK(std::ssize(values) == shape.size(), "{} values for a constant {}", values.size(),
                 ToString(shape));
    return AddConstant({.type = {DTypeOf<T>(), shape},
                        .kind = ValueKind::kConstant,
                        .constant = std::move(values)});
  }
  // A constant whose elements are all `value`.
  Value FillConstant(TensorType type, double value);
  // The parameter's values, and the arena slot its gradient accumulates in.
  Value Parameter(const syntra::Parameter& parameter);
  Value GradientOf(const syntra::Parameter& parameter);
  // One of the sums over a step's examples that follow the gradients (core/parameters.h), of at
  // most ParameterStore::kSumElements elements. A run adds to it once.
  Value StepSum(const std::string& name, TensorType type, const ParameterStore& parameters,
                int place);
  void AddToStepSum(Value sum, Value value);
  // A tensor in the state arena at `offset` elements (optimizer moments, decoding caches).
  Value State(const std::string& name, TensorType type, int64_t offset);

  std::vector<Value> Record(std::string_view op, Attributes attributes,
                            std::vector<Value> inputs) override;
  // Records an op that updates existing values: `outputs` are state, parameters or inputs.
  void RecordUpdate(std::string_view op, Attributes attributes, std::vector<Value> inputs,
                    std::vector<Value> outputs);
  const TensorType& TypeOf(Value value) const override { return program_.info(value).type; }

  // How many instructions are recorded; calls that Build joins count one each.
  size_t instruction_count() const { return program_.instructions.size(); }

  // Makes `value` readable by name after a run.
  void Output(const std::string& name, Value value);

  // Runs `record`; if `recompute`, values that only it uses are not kept for the backward half but
  // computed again there.
  void Region(bool recompute, const std::function<void()>& record);

  // Appends the backward half: the gradients of the sum of `losses`, f32[1] each, with respect to
  // every trainable parameter it depends on are added to their arena slots.
  void Differentiate(std::span<const Value> losses);
  void Differentiate(Value loss) { Differentiate(std::span(&loss, 1)); }

  // Returns the program. Results of calls with several results that nothing reads have type none.
  Program Build() &&;

 private:
  class Tape;
  // The region that an instruction is a part of.
  struct RegionMark {
    int number = 0;           // from 1 on; 0: none
    bool recomputed = false;  // values that only the region uses are computed again

    friend bool operator==(const RegionMark&, const RegionMark&) = default;
  };
  // Calls that one call of `op` can do, in the order of the program.
  struct JointCalls {
    std::string op;
    std::vector<size_t> calls;  // instructions
  };

  Value NewValue(ValueInfo info);
  Value AddConstant(ValueInfo info);
  // The value of that name; names are unique over all kinds.
  Value Named(ValueInfo info);
  void JoinCalls();
  std::vector<JointCalls> FindJointCalls() const;
  // Puts the call that does all of the group in the place of the first.
  void JoinInFirst(const JointCalls& group);
  void RemoveInstructions(const std::set<size_t>& removed);
  void EndForwardHalf();
  void LeaveOutUnread();
  // The attribute that gives an op's result the element type of `value`.
  Attributes TypeLike(Value value) const {
    return {{"dtype", std::string(NameOf(TypeOf(value).dtype))}};
  }
  Instruction MakeInstruction(std::string_view op, Attributes attributes,
                              std::vector<Value> inputs) const;

  Program program_;
  std::unordered_map<std::string, Value> named_;
  std::vector<Value> constants_;
  std::vector<bool> trainable_;     // per value: a parameter that learns
  std::vector<int> gradient_slot_;  // per value: index of the parameter's gradient value, or -1
  std::vector<RegionMark> region_of_instruction_;
  int regions_ = 0;
  RegionMark open_region_;
  Join join_;
};

// The one output of a call to an op that has one.
Value RecordOne(Recorder& recorder, std::string_view op, Attributes attributes,
                std::vector<Value> inputs);

}  // namespace syntra
