// SPDX-License-Identifier: Apache-2.0
// Owned memory: of the host, or of a device.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "base/divide.h"

namespace syntra {

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  // Zero-initialised. The pages of a large buffer are allocated at once, by all threads. Throws
  // Error(kResources) naming `purpose` and the size when memory cannot be had.
  Buffer(size_t bytes, const char* purpose);

  // Takes over memory that `release` gives back.
  using Release = std::function<void(std::byte* data, size_t size)>;
  Buffer(std::byte* data, size_t size, Release release)
      : data_(data), size_(size), release_(std::move(release)) {}

  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Buffer() {
    if (data_) release_(data_, size_);
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  Release release_;
};

constexpr size_t AlignUp(size_t offset, size_t alignment = Buffer::kAlignment) {
  return DivideUp(offset, alignment) * alignment;
}

}  // namespace syntra
