// SPDX-License-Identifier: Apache-2.0
// Lays the parts of a kernel's workspace one after another, each 64-byte aligned.
#pragma once

#include "core/buffer.h"

namespace syntra {

class WorkspaceLayout {
 public:
  // The offset of a part of `bytes`.
  size_t Place(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ = AlignUp(bytes_ + bytes);
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace syntra
