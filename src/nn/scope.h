// SPDX-License-Identifier: Apache-2.0
// The scope in which a layer is recorded: the program, the parameters, a name prefix, and the
// settings that all layers share (element type of activations, dropout).
#pragma once

#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "program/builder.h"

namespace syntra {

// The settings that all layers of one program share while it is recorded.
struct Recording {
  ProgramBuilder& program;
  const ParameterStore& parameters;
  // `parameters` again, if a parameter is added when it is first used; null: all are declared.
  ParameterStore* declares = nullptr;
  DType activations = DType::kF32;
  // Dropout is recorded only in training.
  bool training = false;
  Value dropout_keys;  // i32 [B, 2]
  DropoutNoise dropout_noise = SHARED_OVER_LENGTH;
  int64_t next_dropout_site = 0;
  // The terms that training adds to the loss of the targets, f32 [1] each; recorded only in
  // training.
  std::vector<Value> penalties;
  // The weights of each attention, f32 [B, H, T, S]; null: they are not recorded.
  struct Weights {
    std::string scope;
    bool within_sequence;  // queries and keys are the positions of the same sequence
    Value value;
  };
  std::vector<Weights>* weights = nullptr;
};

class Scope {
 public:
  explicit Scope(Recording& recording, std::string prefix = "")
      : recording_(&recording), prefix_(std::move(prefix)) {}

  // A scope below this one: names become "prefix/name/...".
  Scope operator/(const std::string& name) const {
    return Scope(*recording_, prefix_.empty() ? name : prefix_ + '/' + name);
  }

  // The parameter "prefix/name". The first use declares it, where the recording declares; later
  // uses must have the same shape.
  Value Parameter(const std::string& name, Shape shape, Initializer initializer,
                  bool trainable = true, int64_t redraw_every = 0) const;

  const std::string& prefix() const { return prefix_; }
  Recording& recording() const { return *recording_; }
  ProgramBuilder& program() const { return recording_->program; }
  const TensorType& TypeOf(Value value) const { return program().TypeOf(value); }
  Value One(std::string_view op, Attributes attributes, std::vector<Value> inputs) const {
    return RecordOne(program(), op, std::move(attributes), std::move(inputs));
  }

 private:
  Recording* recording_;
  std::string prefix_;
};

}  // namespace syntra
