// SPDX-License-Identifier: Apache-2.0
#include "core/transient_buffer.h"

namespace syntra {

void TransientBuffer::Reserve(size_t bytes) {
  if (bytes <= buffer_.size()) return;
  device_.Wait();
  buffer_ = Buffer();
  buffer_ = device_.Allocate(bytes, "activations");
}

}  // namespace syntra
