// SPDX-License-Identifier: Apache-2.0
// Reading and writing past the page cache (O_DIRECT), for large files that nobody reads again soon.
// What is written goes to the disk at once. The cache's memory stays with the files that are read
// all the time, such as the data of training.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "base/file.h"

namespace syntra {

// From now on reads and writes of this file pass by the page cache, if its file system can do that.
// They should use a DirectBlock, and begin and end at multiples of DirectBlock::kAlignment. A read
// or write that cannot be done in this way, such as of the end of a file, goes through the cache,
// and so do all later ones.
void BypassPageCache(const File& file);

// Memory from which, and to which, any disk can write and read directly.
class DirectBlock {
 public:
  static constexpr size_t kAlignment = 4096;

  // Not initialised.
  explicit DirectBlock(size_t bytes)
      : memory_(static_cast<std::byte*>(operator new (bytes, std::align_val_t{kAlignment}))),
        bytes_(bytes) {}
  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  struct Delete {
    void operator()(std::byte* memory) const {
      operator delete (memory, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte, Delete> memory_;
  size_t bytes_;
};

}  // namespace syntra
