// SPDX-License-Identifier: Apache-2.0
// Tensors by name, wherever they are stored: what every format is read through.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "core/tensor.h"

namespace syntra {

class TensorSource {
 public:
  using Types = std::map<std::string, TensorType, std::less<>>;

  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  // The type of every tensor, as Read gives it.
  const Types& tensors() const { return tensors_; }

  // The values of a tensor whose type is f32: row-major, as many as its shape has. Throws
  // Error(kCheckpoint) if the file no longer holds what it did when it was opened.
  virtual void Read(std::string_view name, std::span<float> values) = 0;

 protected:
  Types tensors_;
};

}  // namespace syntra
