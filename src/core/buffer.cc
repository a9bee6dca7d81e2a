// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.h"
#include "base/text.h"
#include "core/thread.h"

namespace syntra {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLarge = 2 * kHugePage;

// Takes the pages of a large buffer now, by all threads. In the first step they would come one by
// one, and a thread that waits for the system to clear a page would make all others wait. Huge
// pages save TLB misses on the streaming kernels. Either is a hint that the system may decline.
void TakePages(std::byte* data, size_t bytes) {
  madvise(data, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  ParallelFor(static_cast<int64_t>(bytes), kHugePage, [data](int64_t begin, int64_t end) {
    madvise(data + begin, static_cast<size_t>(end - begin), MADV_POPULATE_WRITE);
  });
#endif
}

}  // namespace

Buffer::Buffer(size_t bytes, const char* purpose)
    : size_(bytes), release_([](std::byte* data, size_t size) { munmap(data, size); }) {
  if (bytes == 0) return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    Fail(ExitCode::kResources, "cannot get {} of memory for {}: {}",
         HumanBytes(static_cast<double>(bytes)), purpose, SystemErrorText(errno));
  }
  data_ = static_cast<std::byte*>(address);
  if (bytes >= kLarge) TakePages(data_, bytes);
}

}  // namespace syntra
