// SPDX-License-Identifier: Apache-2.0
// Prefetches memory before it is used.
#pragma once

#include <cstddef>

#include "hwy/base.h"

namespace syntra {

inline constexpr size_t kCacheLineBytes = 64;

// Prefetches a row into the second-level cache. The first-level cache allows too few outstanding
// requests to hide the latency of memory. Addresses past the end of a tensor are harmless: a
// prefetch does not fault. Always inlined, because compilers drop calls of functions that only
// prefetch.
HWY_INLINE void PrefetchRow(const void* row, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) {
    __builtin_prefetch(static_cast<const std::byte*>(row) + at, 0, 2);
  }
}

}  // namespace syntra
