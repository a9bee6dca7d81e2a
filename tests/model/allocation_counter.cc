// Counts every allocation of the process: glibc's allocation functions, replaced. A shared library,
// because the programs of this project export no symbols (data/CMakeLists.txt).
#include "model/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<int64_t> allocations = 0;
}

int64_t AllocationCount() { return allocations; }

// glibc's own, under the names that let programs replace them.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}
