// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of the process by replacing glibc's allocation functions and operator new.
// It is a shared library, because the programs of this project export no symbols
// (packaging/dependencies.cmake).
#include "model/allocation_counter.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

namespace {

std::atomic<int64_t> allocations = 0;

// The address range of oneDNN's code.
uintptr_t library_begin = 0, library_end = 0;

__attribute__((constructor)) void FindLibrary() {
  const auto visit = [](dl_phdr_info* info, size_t, void*) {
    if (!std::strstr(info->dlpi_name, "libdnnl")) return 0;
    library_begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      const uintptr_t end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
      if (part.p_type == PT_LOAD && end > library_end) library_end = end;
    }
    return 1;
  };
  dl_iterate_phdr(visit, nullptr);
}

void Count(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  if (address < library_begin || address >= library_end) ++allocations;
}

}  // namespace

#define SYNTRA_COUNT() Count(__builtin_return_address(0))

int64_t AllocationCount() { return allocations; }

// glibc's own, under the names that let programs replace them.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  SYNTRA_COUNT();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  SYNTRA_COUNT();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  SYNTRA_COUNT();
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  SYNTRA_COUNT();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  SYNTRA_COUNT();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  SYNTRA_COUNT();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}

// Replaced too, so that the caller is the code that wants memory and not the C++ library.
void* operator new(size_t size) {
  SYNTRA_COUNT();
  if (void* memory = __libc_malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t size) {
  SYNTRA_COUNT();
  if (void* memory = __libc_malloc(size)) return memory;
  throw std::bad_alloc();
}
