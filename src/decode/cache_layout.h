// SPDX-License-Identifier: Apache-2.0
// Where the states of a decoder's mixers are in the memory of a session.
#pragma once

#include <map>
#include <string>

#include "mixers/mixer.h"
#include "program/builder.h"

namespace syntra {

struct StatePlace {
  TensorType type;
  StateKind kind;
  int64_t offset;  // in elements of the state arena
};

// Gives each named state a place in one arena, the same in every program that asks. The first
// program asks for all of them; others may ask for the first rows of a state.
class CacheLayout {
 public:
  Value Get(ProgramBuilder& builder, const std::string& name, const TensorType& type,
            StateKind kind) {
    const auto [it, fresh] =
        places_.emplace(name, StatePlace{type, kind, static_cast<int64_t>(bytes_ / sizeof(float))});
    if (fresh) bytes_ += AlignUp(type.bytes());
    const TensorType& whole = it->second.type;
    SYNTRA_CHECK(type.bytes() * whole.shape[0] == whole.bytes() * type.shape[0] &&
                     type.shape[0] <= whole.shape[0],
                 "state {}: {} in the place of {}", name, ToString(type), ToString(whole));
    return builder.State("cache/" + name, type, it->second.offset);
  }
  MixerState For(ProgramBuilder& builder) {
    return [this, &builder](const std::string& name, const TensorType& type, StateKind kind) {
      return Get(builder, name, type, kind);
    };
  }
  const std::map<std::string, StatePlace>& places() const { return places_; }
  size_t bytes() const { return bytes_; }

 private:
  std::map<std::string, StatePlace> places_;
  size_t bytes_ = 0;
};

}  // namespace syntra
