// SPDX-License-Identifier: Apache-2.0
// Asking for memory ahead of its use.
#pragma once

#include <cstddef>

#include "hwy/base.h"

namespace syntra {

inline constexpr size_t kCacheLineBytes = 64;

// Asks for a row's lines into the second cache: the first one has too few requests under way to
// hide the way from memory. Reaching behind the end of a tensor is harmless: a prefetch does not
// fault. Always inlined, for a compiler drops calls of what only prefetches.
HWY_INLINE void PrefetchRow(const void* row, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) {
    __builtin_prefetch(static_cast<const std::byte*>(row) + at, 0, 2);
  }
}

}  // namespace syntra
