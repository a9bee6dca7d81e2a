// SPDX-License-Identifier: Apache-2.0
// Sums of sizes. A sum that does not fit into 64 bits is an error instead of a wrong number.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace syntra {

// a + b. Throws Error(kConfig) if that is above 2^63 - 1; the message names `what` is counted.
inline int64_t CheckedAdd(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    Fail(ExitCode::kConfig, "{} and {} {} are more than can be counted; make the model smaller", a,
         b, what);
  }
  return sum;
}

}  // namespace syntra
