#include "core/buffer.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace syntra {

Buffer::Buffer(size_t bytes, const char* purpose) : size_(bytes) {
  if (bytes == 0) return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    Fail(ExitCode::kResources, "cannot get {} of memory for {}: {}",
         HumanBytes(static_cast<double>(bytes)), purpose, SystemErrorText(errno));
  }
  // Huge pages save TLB misses on the streaming kernels; the kernel may decline.
  if (bytes >= size_t{4} << 20) madvise(address, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(address);
}

Buffer::~Buffer() {
  if (data_) munmap(data_, size_);
}

}  // namespace syntra
