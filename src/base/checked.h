// SPDX-License-Identifier: Apache-2.0
// Sums of sizes that are an error, not another number, where they pass 64 bits.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace syntra {

// a + b; throws Error(kConfig) naming `what` is counted if that is above 2^63 - 1.
inline int64_t CheckedAdd(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    Fail(ExitCode::kConfig, "{} and {} {} are more than can be counted; make the model smaller", a,
         b, what);
  }
  return sum;
}

}  // namespace syntra
