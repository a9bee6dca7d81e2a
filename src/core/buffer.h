// Owned host memory, aligned for SIMD and page-mapped when large.
#pragma once

#include <cstddef>
#include <utility>

namespace syntra {

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  // Zero-initialised, and in memory from the start. Throws Error(kResources) naming `purpose` and
  // the size when memory cannot be had.
  Buffer(size_t bytes, const char* purpose);

  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

constexpr size_t AlignUp(size_t offset, size_t alignment = Buffer::kAlignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace syntra
