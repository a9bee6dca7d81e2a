// SPDX-License-Identifier: Apache-2.0
// Memory shared by several users of which one runs at a time, as large as the largest of them
// needs: for the transient values of executables that run one after another, and for the caches of
// decoding sessions.
#pragma once

#include "core/device.h"

namespace syntra {

class TransientBuffer {
 public:
  // The device must outlive it.
  explicit TransientBuffer(Device& device) : device_(device) {}
  TransientBuffer(const TransientBuffer&) = delete;
  TransientBuffer& operator=(const TransientBuffer&) = delete;

  // Makes the buffer hold at least `bytes`. If it grows, its contents are lost and data() changes;
  // the old memory is given back first. Throws Error(kResources) if memory cannot be had.
  void Reserve(size_t bytes);

  std::byte* data() const { return buffer_.data(); }
  size_t size() const { return buffer_.size(); }

 private:
  Device& device_;
  Buffer buffer_;
};

}  // namespace syntra
