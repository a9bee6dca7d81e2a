// SPDX-License-Identifier: Apache-2.0
// Where a layer records itself: the program, the parameter list, a name prefix, and what all layers
// of a program share (element type of activations, dropout).
#pragma once

#include <string>

#include "configs/schema/config.pb.h"
#include "program/builder.h"

namespace syntra {

// What every layer of one recorded program has in common.
struct Recording {
  ProgramBuilder& program;
  ParameterStore& parameters;
  DType activations = DType::kF32;
  // Dropout happens only while training.
  bool training = false;
  Value dropout_keys;  // i32 [B, 2]
  DropoutNoise dropout_noise = SHARED_OVER_LENGTH;
  int64_t next_dropout_site = 0;
};

class Scope {
 public:
  explicit Scope(Recording& recording, std::string prefix = "")
      : recording_(&recording), prefix_(std::move(prefix)) {}

  // A scope below this one: names become "prefix/name/...".
  Scope operator/(const std::string& name) const {
    return Scope(*recording_, prefix_.empty() ? name : prefix_ + '/' + name);
  }

  // The parameter "prefix/name", declared on first use. Later uses must agree in shape.
  Value Parameter(const std::string& name, Shape shape, std::vector<std::string> axes,
                  Initializer initializer, bool trainable = true) const;

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
