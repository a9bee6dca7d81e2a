// SPDX-License-Identifier: Apache-2.0
// A flat arena of f32 in a device's memory, and the host's copy of it. If the device is the host,
// both are the same memory, and nothing is copied.
#pragma once

#include <span>

#include "core/tensor.h"

namespace syntra {

class Arena {
 public:
  Arena() = default;
  // Zeros. Throws Error(kResources) naming `purpose` if the memory cannot be had.
  Arena(Device& device, int64_t elements, const char* purpose);

  int64_t elements() const { return elements_; }
  void* data() const { return values_.data(); }
  TensorView view() const { return {values_.data(), {DType::kF32, {elements_}}, device_}; }
  // `count` elements from `first` on.
  TensorView Part(int64_t first, int64_t count) const {
    return {static_cast<float*>(data()) + first, {DType::kF32, {count}}, device_};
  }

  // The host's copy: the values of the last Fetch, with what was written to it since.
  std::span<float> host();
  void Fetch();
  void Send();
  // Frees the host's copy, if that is not the arena itself. The next call of host() makes another.
  void ReleaseHost() { copy_ = Buffer(); }

 private:
  Device* device_ = &Host();
  int64_t elements_ = 0;
  const char* purpose_ = "";
  Buffer values_;
  Buffer copy_;  // made when it is first asked for
};

}  // namespace syntra
