// SPDX-License-Identifier: Apache-2.0
// Lays out a kernel's workspace: parts one after another, each aligned to 64 bytes.
#pragma once

#include <cstdint>

#include "core/buffer.h"

namespace syntra {

class WorkspaceLayout {
 public:
  // Adds a part of `bytes` bytes. Returns its offset.
  size_t Place(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ = AlignUp(bytes_ + bytes);
    return offset;
  }
  size_t PlaceFloats(int64_t count) { return Place(count * sizeof(float)); }
  // The size of all parts together.
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace syntra
