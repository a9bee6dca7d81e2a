// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that makes allocations fail from the FAIL_MALLOC-th on, counted from the
// point where the program installs its handlers. With FAIL_MALLOC_ONCE only that one fails. With
// COUNT_MALLOC it prints the number of allocations at the end. Linked: see failing_malloc.h.
#include "tests/base/failing_malloc.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* data, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<int64_t> requests{0};
std::atomic<bool> armed{false};
int64_t first_refused = INT64_MAX;
bool once = false;

bool Refused() {
  if (!armed) return false;
  const int64_t number = ++requests;
  const bool refused = once ? number == first_refused : number >= first_refused;
  if (refused) errno = ENOMEM;
  return refused;
}

void PrintCount() {
  char line[64];
  const int size = snprintf(line, sizeof line, "%lld requests\n", static_cast<long long>(requests));
  if (write(STDERR_FILENO, line, size) < 0) return;
}

}  // namespace

extern "C" {

void RefuseMemory(int64_t request) {
  requests = 0;
  first_refused = request;
  once = true;
  armed = true;
}

int64_t MemoryRequests() { return requests; }

void* malloc(size_t size) { return Refused() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Refused() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* data, size_t size) { return Refused() ? nullptr : __libc_realloc(data, size); }
void* memalign(size_t alignment, size_t size) {
  return Refused() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** data, size_t alignment, size_t size) {
  *data = memalign(alignment, size);
  return *data ? 0 : ENOMEM;
}

// InstallCrashHandlers calls it: what fails before main is nobody's to handle.
int on_exit(void (*function)(int, void*), void* argument) {
  using OnExit = int (*)(void (*)(int, void*), void*);
  static const auto real = reinterpret_cast<OnExit>(dlsym(RTLD_NEXT, "on_exit"));
  const char* number = getenv("FAIL_MALLOC");
  if (number) first_refused = atoll(number);
  once = getenv("FAIL_MALLOC_ONCE") != nullptr;
  if (getenv("COUNT_MALLOC")) atexit(PrintCount);
  const int result = real(function, argument);
  armed = true;
  return result;
}

}  // extern "C"
